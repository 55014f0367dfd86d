#include "alloc/allocation_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "profile/function_table.h"

namespace luaspy {
namespace {

class Builder {
 public:
  Builder(const Profile& profile, bool lines) : profile_(profile), table_(functions_of(profile, lines)) {
    made_.functions.push_back({"(root)", "", 0});
    for (std::size_t i = 0; i < table_.functions.size(); ++i)
      made_.functions.push_back({table_.texts[i], table_.functions[i].file, line_of(table_.functions[i])});
    made_.calls.emplace_back();
  }

  // The innermost call of a stack. DevTools reads the tree by recursion: Chromium 156 takes 3,000 calls,
  // and no file that has 5,000. Of deeper stacks the innermost calls are what is wanted.
  std::uint32_t call_of(const Profile::ThreadSituation& of) {
    constexpr std::size_t most = 2000;
    const std::vector<FrameId> frames = profile_.stack(profile_.situations()[of.situation].stack);
    std::uint32_t call = 0;
    for (const FrameId frame : std::span(frames).last(std::min(frames.size(), most)))
      call = callee(call, 1 + table_.of_frame[frame]);
    return call;
  }

  HeapsnapshotAllocations& made() { return made_; }

 private:
  std::uint32_t callee(std::uint32_t caller, std::uint32_t function) {
    const auto next = static_cast<std::uint32_t>(made_.calls.size());
    const auto [known, is_new] = callees_.try_emplace({caller, function}, next);
    if (is_new) {
      made_.calls[caller].callees.push_back(next);
      made_.calls.push_back({function, 0, 0, {}});
    }
    return known->second;
  }

  const Profile& profile_;
  FunctionTable table_;
  HeapsnapshotAllocations made_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> callees_;  // by caller and function
};

}  // namespace

constexpr Format allocation_trace_format = {
    "heapsnapshot",  ".heapsnapshot",
    ".heaptimeline", "load it in Chrome: DevTools, Memory, Allocations on timeline with stack traces, Load profile",
    Shows::sums,     nullptr};

HeapsnapshotAllocations allocation_trace(const Profile& bytes, const Profile& objects, bool lines,
                                         std::span<const LiveRecording::InUse> in_use) {
  Builder builder(bytes, lines);
  for (const auto& [of, amount] : bytes.counts()) {
    HeapsnapshotAllocations::Call& call = builder.made().calls[builder.call_of(of)];
    call.bytes += amount.weight;
    call.objects += objects.counts().at(of).weight;
  }
  for (const LiveRecording::InUse& each : in_use) {
    if (each.object != 0) builder.made().made_in.insert_or_assign(each.object, builder.call_of(each.of));
  }
  return std::move(builder.made());
}

}  // namespace luaspy
