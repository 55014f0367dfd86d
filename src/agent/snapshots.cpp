#include "agent/snapshots.h"

#include <fmt/format.h>

#include "base/say.h"
#include "base/text.h"
#include "system/signals.h"

namespace luaspy {

Snapshots::~Snapshots() {
  if (writes_.joinable()) writes_.join();
}

Result<std::vector<std::string>> Snapshots::write(int pid) {
  const std::lock_guard held(lock_);
  Result<std::vector<std::string>> paths = write_snapshot(recorder_.parts(), pid, options_);
  if (paths) files_ += std::ssize(*paths);
  return paths;
}

bool Snapshots::begin(int pid, const std::string& why) {
  constexpr std::chrono::seconds apart(10);
  const system::Clock::time_point now = system::Clock::now();
  if (is_busy_ || (begun_ != system::Clock::time_point() && now - begun_ < apart)) return false;
  if (writes_.joinable()) writes_.join();
  begun_ = now;
  is_busy_ = true;
  writes_ = system::thread_without_signals([this, pid, why] {
    const Result<std::vector<std::string>> paths = write(pid);
    if (paths) say("luaspy agent: process {}: {}: written: {}\n", pid, why, joined(*paths, ", "));
    else say("luaspy agent: process {}: {}: no snapshot: {}\n", pid, why, paths.error().text);
    is_busy_ = false;
  });
  return true;
}

}  // namespace luaspy
