#pragma once
// What was allocated during a recording and is still in use at its end: recordings of bytes and of
// objects, made of the samples whose blocks a snapshot of the heap still has.

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "alloc/live_blocks.h"
#include "allocations/allocation_sink.h"
#include "heap/heap_analysis.h"
#include "heap/heap_snapshot.h"
#include "recording/recording.h"

namespace luaspy {

class ProcessTree;

class LiveRecording {
 public:
  LiveRecording(EventTables& tables, const ViewOptions& shape)
      : tables_(tables), bytes_(tables, shape, false), objects_(tables, shape, false) {}

  // A sample of process `pid`, which `counted` has counted last. `location`: a number of the caller's.
  void add(int pid, std::int64_t at_ns, const AllocationSample& allocation, const Profile& counted,
           std::size_t location);

  // At each probe of a Lua.
  void look(int pid, Address G, std::uint64_t identity, std::int64_t at_ns, const HeapReader& reader) {
    ages_[{pid, G, identity}].look(at_ns, reader);
  }

  // At the end of a recording of that length. `counted`: the same as in add(). What was allocated in
  // its last tenth is left out: it is still there because it is young. An Error if there is no
  // snapshot of any process; then nothing is in use.
  Result<void> finish(ProcessTree& tree, const Profile& counted, std::int64_t duration_ns);

  // The heap of a process at the end.
  struct Heap {
    HeapSnapshot snapshot;
    std::vector<std::unique_ptr<HeapAnalysis>> states;
  };
  // To be called before finish(), if heaps() is wanted afterwards: of all processes and all their Luas.
  // They ask the tree, which must live as long.
  void keep_heaps() { keeps_heaps_ = true; }
  const std::vector<Heap>& heaps() const { return heaps_; }

  struct Sums {
    std::int64_t samples = 0;
    double bytes = 0;
  };
  const Sums& sums(Fate fate) const { return sums_[static_cast<std::size_t>(fate)]; }
  const Sums& young() const { return young_; }

  Recording& bytes() { return bytes_; }
  Recording& objects() { return objects_; }
  const Recording& bytes() const { return bytes_; }
  const Recording& objects() const { return objects_; }

  // In use, by thread and situation of `counted`.
  struct InUse {
    Profile::ThreadSituation of;
    std::size_t location = 0;  // as noted
    Address object = 0;        // 0: it is only a part of one
    std::int64_t at_ns = 0, bytes = 0, objects = 0;
  };
  const std::vector<InUse>& in_use() const { return in_use_; }
  // How many objects are gone, by location.
  const std::map<std::size_t, double>& gone() const { return gone_; }

 private:
  struct Noted {
    int pid = 0;
    Address G = 0;
    std::uint64_t identity = 0;
    SampledBlock block;
    Profile::ThreadSituation of;
    std::size_t location = 0;
    double bytes = 0, objects = 0;
    bool is_settled = false;
  };
  void finish(Heap& heap, std::int64_t old_until_ns);
  void finish(std::span<Noted* const> noted, const AgeMarks& ages, const HeapAnalysis& heap);
  void count(const Noted& each, Fate fate);
  void add(const InUse& each, const Profile& counted);

  EventTables& tables_;
  std::vector<Noted> noted_;
  std::map<std::tuple<int, Address, std::uint64_t>, AgeMarks> ages_;  // by process, Lua and its identity
  std::array<Sums, 3> sums_{};                                        // by Fate
  Sums young_;
  std::vector<InUse> in_use_;
  std::map<std::size_t, double> gone_;
  bool keeps_heaps_ = false;
  std::vector<Heap> heaps_;
  Recording bytes_, objects_;
};

}  // namespace luaspy
