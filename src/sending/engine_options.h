#pragma once
// How a command reaches an engine.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sending/authorization.h"

namespace luaspy {

enum class Engine { otlp, pyroscope, parca };
constexpr std::array<std::string_view, 3> engine_names = {"otlp", "pyroscope", "parca"};

struct EngineOptions {
  std::string to;  // URL
  Engine engine = Engine::otlp;
  std::vector<std::string> attributes;  // KEY=VALUE, of all profiles
  Authorization authorization;
  std::string ca_file;  // certificates to trust instead of the system's; "": those
};

}  // namespace luaspy
