#pragma once
// Which of the sampled blocks are still in use at the end of a recording, by a snapshot of the heap:
// those of objects that can be reached then.
//
// Memory is used again, so an object at the same address need not be the same one. It is not if its
// type or size differs. Otherwise its place in the collector's list tells, which has the objects in
// the order in which they were made: those that are made within some short times are remembered, and
// whatever is younger at the end than one of them was made later. Strings that are in no such list differ in
// what they say: each text is there only once.

#include <cstdint>
#include <span>
#include <vector>

#include "allocations/block_use.h"
#include "heap/heap_analysis.h"

namespace luaspy {

struct SampledBlock {
  Block block;
  BlockUse use;
  std::int64_t at_ns = 0;
};

// Objects that were made within some short times.
class AgeMarks {
 public:
  // Called often; `reader` is of the running process. Some hundred times a second, what was made
  // between two calls is remembered.
  void look(std::int64_t at_ns, const HeapReader& reader);
  struct Mark {
    std::int64_t from_ns = 0;  // all were made after that
    std::vector<Address> objects;
  };
  const std::vector<Mark>& marks() const { return marks_; }

 private:
  void add(const HeapReader& reader);
  void thin_out();

  std::vector<Mark> marks_;  // in the order of time
  std::size_t objects_ = 0;  // in all of them
  Address youngest_ = 0;     // at from_ns_; 0: not asked
  std::int64_t from_ns_ = 0, next_ns_ = 0;
  std::int64_t each_ns_ = 5'000'000;
};

// Which of the objects that are where sampled ones were cannot be those, because they were made later.
// `places`: in the collector's list, 0 for its youngest object; negative: not in it.
struct AgedPlaces {
  std::int64_t from_ns = 0;  // all were made after that
  std::vector<std::int64_t> places;
};
// `sampled` was there at that time, and has one place each. Both are in the order of time.
std::vector<bool> made_later(std::span<const AgedPlaces> sampled, std::span<const AgedPlaces> marks);

enum class Fate : std::uint8_t {
  in_use,
  gone,
  // Its object was not found, or is of a type whose ages the list does not tell; or the collector's state is not known.
  not_known,
};

// `blocks`, `ages`: of the Lua that `heap` is of, in the order of time. The result has the order of
// `blocks`.
std::vector<Fate> fates_of(std::span<const SampledBlock> blocks, const AgeMarks& ages, const HeapAnalysis& heap);

}  // namespace luaspy
