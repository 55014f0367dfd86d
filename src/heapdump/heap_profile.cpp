#include "heapdump/heap_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/version.h"
#include "heapdump/heap_boxes.h"

namespace luaspy {
namespace {

// Each object of a box is a sample; only the sum of their sizes is known.
void add(Profile& profile, std::uint32_t thread, const HeapBox& box, StackId stack) {
  const Sample facts;
  const auto objects = static_cast<std::int64_t>(box.objects), bytes = static_cast<std::int64_t>(box.bytes);
  for (std::int64_t i = 0; i < objects; ++i)
    profile.add(thread, {0, bytes / objects + (i < bytes % objects ? 1 : 0)}, facts, stack);
}

void add(Profile& profile, std::uint32_t thread, const HeapBoxes& all) {
  std::vector<StackId> stacks(all.boxes.size());
  for (std::size_t i = 1; i < all.boxes.size(); ++i) {
    const HeapBox& box = all.boxes[i];
    stacks[i] = profile.stacks().intern({stacks[box.outer], profile.stacks().intern(marker(box.label))});
    add(profile, thread, box, stacks[i]);
  }
}

}  // namespace

Profile heap_profile(const HeapSnapshot& snapshot, std::span<const HeapAnalysis* const> analyses,
                     std::size_t most_depth) {
  constexpr std::int64_t second = 1'000'000'000;
  Profile profile;
  profile.about.luaspy = std::string(version);
  profile.about.command = snapshot.command;
  profile.about.pid = snapshot.pid;
  profile.about.started_s = snapshot.taken_ns / second;
  profile.about.unit = Unit::bytes;
  profile.about.lua_mapped = true;
  profile.about.complete = true;
  for (const HeapAnalysis* const analysis : analyses) {
    const std::string lua = analysis->lua().name();
    if (std::ranges::find(profile.about.luas, lua) == profile.about.luas.end()) profile.about.luas.push_back(lua);
    ThreadInfo thread;
    thread.tid = static_cast<int>(profile.threads().size() + 1);
    thread.name = fmt::format("{} at {:#x}", lua, analysis->global_state());
    add(profile, profile.index_of(thread), heap_boxes(*analysis, most_depth));
  }
  return profile;
}

}  // namespace luaspy
