#include "named_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace luaspy::live {

std::vector<Words> interpreters() {
  std::vector<Words> all;
  for (const std::string& start : prepared({"5.1", "5.2", "5.3", "5.4", "5.5"})) {
    const auto found = std::ranges::find_if(
        targets(), [&](const TargetSpec& each) { return each.version.starts_with(start) && each.kind != "host"; });
    INFO("a Lua " << start);
    REQUIRE(found != targets().end());
    all.push_back(found->command);
  }
  all.push_back(command_of(target(luajit), Jit::on));
  all.push_back(command_of(target(luajit), Jit::off));
  return all;
}

std::int64_t NamedStacks::with(const std::string& frame) const {
  std::int64_t count = 0;
  for (const FoldedStack& stack : stacks)
    count += std::ranges::find(stack.frames, frame) != stack.frames.end() ? stack.count : 0;
  return count;
}

std::set<std::string> NamedStacks::frames_at(const std::string& place) const {
  std::set<std::string> found;
  for (const FoldedStack& stack : stacks) {
    for (const std::string& frame : stack.frames) {
      if (frame.find(place) != std::string::npos) found.insert(frame);
    }
  }
  return found;
}

NamedStacks record_names(const Running& running, const Folder& folder, std::int64_t enough) {
  const std::string raw = folder.path("raw.luaspy");
  NamedStacks named;
  for (double seconds = 0.6; seconds < 30; seconds *= 2) {
    const Finished recorded = luaspy({"record", "-f", "raw", "-o", raw, "-r", "500", "-d", fmt::format("{}", seconds),
                                      "--max-stopped", "100", "--pid", std::to_string(running.pid())});
    INFO(recorded.err);
    REQUIRE(recorded.status == 0);
    const Finished folded = luaspy({"report", raw, "-f", "folded", "-o", "-"});
    REQUIRE(folded.status == 0);
    named.stacks = parse_folded(folded.out);
    std::int64_t samples = 0;
    for (const FoldedStack& stack : named.stacks) samples += stack.count;
    if (samples >= enough) break;
  }
  return named;
}

}  // namespace luaspy::live
