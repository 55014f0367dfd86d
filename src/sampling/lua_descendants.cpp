#include "sampling/lua_descendants.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "attach/live_memory.h"
#include "attach/process.h"
#include "base/text.h"
#include "stack/target_map.h"

namespace luaspy {
namespace {

constexpr std::size_t most_descendants = 4096;

// `pid` itself is not among them.
std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found = {pid};
  for (std::size_t next = 0; next < found.size() && found.size() < most_descendants; ++next) {
    for (const pid_t child : children_of(found[next])) {
      if (std::ranges::find(found, child) == found.end()) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

std::int64_t cpu_ns_of(pid_t pid) {
  const std::optional<ProcessCpuTime> time = cpu_time_of(pid);
  return time ? time->ns : 0;
}

}  // namespace

std::optional<std::string> lua_in(pid_t pid) {
  const Result<Process> opened = Process::open(pid);
  if (!opened) return std::nullopt;
  Detector detector;
  const LiveMemory memory(pid);
  detector.update(opened->address_space(), memory);
  // Luau and its like are found, but luaspy reads none of it.
  const auto& images = detector.images();
  const auto readable = std::ranges::find_if(images, [](const LuaImage& image) { return !image.layouts.empty(); });
  return readable != images.end() ? std::optional(readable->name()) : std::nullopt;
}

LuaDescendants::LuaDescendants(pid_t pid) : pid_(pid), since_(system::Clock::now()) {
  for (const pid_t each : descendants_of(pid)) cpu_ns_[each] = cpu_ns_of(each);
}

const std::optional<std::string>& LuaDescendants::lua_of(pid_t pid) {
  constexpr std::chrono::seconds again(10);
  const system::Clock::time_point now = system::Clock::now();
  if (asked_.size() > most_descendants) asked_.clear();
  const auto [asked, is_new] = asked_.try_emplace(pid, Asked{now, std::nullopt});
  if (is_new || now - asked->second.at > again) asked->second = {now, lua_in(pid)};
  return asked->second.lua;
}

std::optional<LuaDescendants::Busy> LuaDescendants::busiest() {
  constexpr std::size_t most_looked_at = 16;
  const std::int64_t passed_ns = std::max<std::int64_t>((system::Clock::now() - since_).count(), 1);
  std::vector<std::pair<std::int64_t, pid_t>> by_use;  // one that was born since has used all of its time since
  for (const pid_t each : descendants_of(pid_)) {
    const auto before = cpu_ns_.find(each);
    const std::int64_t used = cpu_ns_of(each) - (before == cpu_ns_.end() ? 0 : before->second);
    if (used > passed_ns / 100) by_use.emplace_back(used, each);
  }
  std::ranges::sort(by_use, std::greater());
  if (by_use.size() > most_looked_at) by_use.resize(most_looked_at);
  const std::vector<pid_t> children = children_of(pid_);
  for (const auto& [used, each] : by_use) {
    if (const std::optional<std::string>& lua = lua_of(each))
      return Busy{each, std::ranges::find(children, each) != children.end(), command_of(each), *lua, used, passed_ns};
  }
  return std::nullopt;
}

std::string busy_text(const LuaDescendants::Busy& busy, std::string_view command, pid_t pid) {
  constexpr std::size_t most_command = 80;
  return fmt::format("Its {} {} ({}) runs {} at {:.0f} % CPU: luaspy {} --pid {}, or -s --pid {} for all of them.",
                     busy.is_child ? "child" : "descendant", busy.pid, printable(busy.command, most_command), busy.lua,
                     100 * static_cast<double>(busy.cpu_ns) / static_cast<double>(busy.passed_ns), command, busy.pid,
                     pid);
}

}  // namespace luaspy
