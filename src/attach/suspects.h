#pragma once
// Which of the kernel's security modules may have forbidden something, when nothing else explains the refusal.

#include <optional>
#include <string>
#include <vector>

namespace luaspy {

enum class Forbidden { tracing, perf_events };

// A part of a sentence: "SELinux forbids it", "no security module that could forbid it is active". No module is
// named that is not active, or has no say in it. `active`: system::security_modules().
std::string suspects(const std::optional<std::vector<std::string>>& active, Forbidden what);

}  // namespace luaspy
