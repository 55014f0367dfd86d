#include "alloc/live_recording.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/say.h"
#include "heapdump/take_snapshot.h"
#include "sampling/process_tree.h"

namespace luaspy {

void LiveRecording::add(int pid, std::int64_t at_ns, const AllocationSample& allocation, const Profile& counted,
                        std::size_t location) {
  noted_.push_back({pid,
                    allocation.G,
                    allocation.identity,
                    {allocation.block, allocation.use, at_ns},
                    counted.last(),
                    location,
                    allocation.bytes,
                    allocation.calls});
}

Result<void> LiveRecording::finish(ProcessTree& tree, const Profile& counted, std::int64_t duration_ns) {
  const std::int64_t old_until_ns = duration_ns - duration_ns / 10;
  std::set<int> pids;  // of which there is a snapshot
  std::optional<Error> refused;
  for (const auto& session : tree.sessions()) {
    Result<HeapSnapshot> snapshot = take_snapshot(*session);
    if (!snapshot) {
      refused = snapshot.error();
      continue;
    }
    pids.insert(snapshot->pid);
    Heap heap{std::move(*snapshot), {}};
    finish(heap, old_until_ns);
    if (keeps_heaps_) heaps_.push_back(std::move(heap));
  }
  for (const Noted& each : noted_) {
    if (each.block.at_ns >= old_until_ns) {
      ++young_.samples;
      young_.bytes += each.bytes;
    } else if (!each.is_settled) {  // its Lua is no longer there
      count(each, pids.contains(each.pid) ? Fate::gone : Fate::not_known);
    }
  }
  std::ranges::sort(in_use_, {}, &InUse::at_ns);
  for (const InUse& each : in_use_) add(each, counted);
  if (pids.empty()) return refused.value_or(Error{Cause::target_ended, "The program has ended."});
  if (refused) say("luaspy: {}\n", refused->text);
  return {};
}

void LiveRecording::finish(Heap& heap, std::int64_t old_until_ns) {
  const HeapSnapshot& snapshot = heap.snapshot;
  for (const HeapSnapshot::State& state : snapshot.states) {
    // Another Lua at its address is gone, and so is all that it had.
    const std::uint64_t identity = state.lua->identity(*snapshot.memory, state.G);
    std::vector<Noted*> noted;
    for (Noted& each : noted_) {
      if (each.pid == snapshot.pid && each.G == state.G && each.identity == identity && each.block.at_ns < old_until_ns)
        noted.push_back(&each);
    }
    if (noted.empty() && !keeps_heaps_) continue;
    HeapAnalysis::Options options;
    options.bytes = snapshot.bytes;
    if (keeps_heaps_) options.code = snapshot.code.get();
    auto analysis = std::make_unique<HeapAnalysis>(*snapshot.memory, *state.lua, state.G, options);
    finish(noted, ages_[{snapshot.pid, state.G, identity}], *analysis);
    if (keeps_heaps_) heap.states.push_back(std::move(analysis));
  }
}

void LiveRecording::finish(std::span<Noted* const> noted, const AgeMarks& ages, const HeapAnalysis& heap) {
  std::vector<SampledBlock> blocks;
  for (const Noted* const each : noted) blocks.push_back(each->block);
  const std::vector<Fate> fates = heap.is_known() ? fates_of(blocks, ages, heap)
                                                  : std::vector(blocks.size(), Fate::not_known);
  for (std::size_t i = 0; i < noted.size(); ++i) {
    noted[i]->is_settled = true;
    count(*noted[i], fates[i]);
  }
}

void LiveRecording::count(const Noted& each, Fate fate) {
  Sums& sums = sums_[static_cast<std::size_t>(fate)];
  ++sums.samples;
  sums.bytes += each.bytes;
  if (fate == Fate::gone) gone_[each.location] += each.objects;
  if (fate != Fate::in_use) return;
  const BlockUse& use = each.block.use;
  in_use_.push_back({each.of, each.location, use.is_part ? 0 : use.object, each.block.at_ns, std::llround(each.bytes),
                     std::llround(each.objects)});
}

void LiveRecording::add(const InUse& each, const Profile& counted) {
  const Profile::Situation& situation = counted.situations()[each.of.situation];
  Sample sample;
  sample.vm_state = situation.vm_state;
  sample.stack = tables_.stacks.intern(counted.stacks().frames_of(situation.stack));
  const ThreadId thread = tables_.threads.intern(counted.threads()[each.of.thread]);
  bytes_.add(thread, {each.at_ns, each.bytes}, sample);
  objects_.add(thread, {each.at_ns, each.objects}, sample);
}

}  // namespace luaspy
