#pragma once
// What a command is told of an engine, and what it needs to send to it.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sending/authorization.h"
#include "sending/engine.h"
#include "sending/http.h"

namespace luaspy {

struct EngineOptions {
  std::string to;  // URL
  Engine engine = Engine::otlp;
  std::vector<std::string> attributes;  // KEY=VALUE, of all profiles
  Authorization authorization;
  std::string ca_file;  // certificates to trust instead of the system's; "": those
};

struct Connection {
  Destination to;
  OtlpAttributes attributes;
  std::unique_ptr<HttpClient> client;
};

// Connects to nobody yet. An Error: an option is wrong, or there is no libcurl.
Result<Connection> prepare_connection(const EngineOptions& options);

}  // namespace luaspy
