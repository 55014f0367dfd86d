#pragma once
// The coroutines of one Lua, as far as they can be known while it runs: seen in its collector's
// list, and still objects of it.
//
// The list is long (a 100 MB heap has a million objects or more), and it changes while it is read.
// But it changes in two ways only: new objects come first; and a sweep takes objects out that are
// dead, which can be told from the object itself: it keeps the white that was current before the
// collector's last atomic phase, which flips it (lgc.c, atomic). So of a coroutine that was seen in
// the list it can be said later, from its own bytes, whether it is still there, as long as the
// white was flipped once at most since; whenever it is seen to be flipped, all of them are looked
// at again. What has been freed keeps its dead white, or it is overwritten.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heap/heap_copy.h"
#include "luastate/collector.h"

namespace luaspy {

class CoroutineList {
 public:
  // `live` has to outlive this.
  CoroutineList(const Memory& live, Address G, const Dialect& lua) : live_(&live), G_(G), lua_(lua) {}

  // The whole list, through `pieces`. The target runs. False: it could not be read to its end, or
  // the white was flipped meanwhile, so that nobody can say which of them are dead: try again.
  bool read_all(HeapCopy& pieces);
  // Those made since the last reading, after the others. In `memory` as it is now; up to `most`
  // objects. False: it went on beyond that.
  bool read_new(const Memory& memory, std::int64_t most);
  // Takes out what is no coroutine any more, if the white was flipped since that was asked last.
  // False: it is flipped all the time.
  bool check();

  // In `memory`: is it one still?
  bool has(const Memory& memory, const CollectorState& collector, Address L) const;

  const std::vector<Address>& threads() const { return threads_; }
  std::int64_t objects() const { return objects_; }
  std::int64_t garbage() const { return garbage_; }
  std::int64_t new_objects() const { return new_objects_; }  // of the last read_new()

 private:
  void check_all(const std::vector<Address>& threads, std::unordered_set<Address>& gone);
  bool flipped();
  void add(const ThreadList& list);
  void remember(std::vector<std::pair<Address, Address>>& links);

  const Memory* live_;
  Address G_;
  Dialect lua_;
  std::vector<Address> threads_;
  std::unordered_set<Address> known_;                 // the same
  std::unordered_map<Address, Address> first_links_;  // object → next, of the beginning of the list at the last
                                                      // readings
  std::int64_t objects_ = 0, garbage_ = 0, new_objects_ = 0;
  std::uint8_t dead_white_ = 0;
};

}  // namespace luaspy
