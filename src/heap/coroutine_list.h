#pragma once
// The coroutines of one Lua, found while it runs: they were seen in its collector's list and are
// still live objects.
//
// The list is long (a 100 MB heap has a million objects or more), and it changes while it is read.
// It changes in only two ways: new objects are added at its front, and a sweep removes dead
// objects. A dead object can be recognised by itself: it keeps the white that was current before
// the collector's last atomic phase, which flips the white (lgc.c, atomic). So a coroutine's own
// bytes later show whether it is still in the list, as long as the white was flipped at most once
// since it was seen. Whenever a flip is noticed, all coroutines are checked again. Freed memory
// keeps its dead white, or is overwritten.

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heap/heap_copy.h"
#include "luastate/collector.h"

namespace luaspy {

class CoroutineList {
 public:
  // `live` must outlive this.
  CoroutineList(const Memory& live, Address G, const Lua& lua) : live_(&live), G_(G), lua_(&lua) {}

  // Reads the whole list, through `pieces`, while the target runs. False: the end was not reached,
  // or the white was flipped meanwhile, so that dead objects cannot be recognised: try again.
  // `told`, if set, is called now and then with how many objects were seen.
  bool read_all(HeapCopy& pieces, const std::function<void(std::int64_t)>& told = {});
  // Appends the coroutines made since the last reading, from `memory` as it is now. Visits up to
  // `most` objects. False: there were more.
  bool read_new(const Memory& memory, std::int64_t most);
  // If the white was flipped since the last check, removes what is no longer a coroutine. False: it
  // keeps being flipped.
  bool check();

  // Is it still a coroutine, in `memory`?
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
  const Lua* lua_;
  std::vector<Address> threads_;
  std::unordered_set<Address> known_;  // the same, for look-ups
  // Object → next object, for the front of the list at the last readings.
  std::unordered_map<Address, Address> first_links_;
  std::int64_t objects_ = 0, garbage_ = 0, new_objects_ = 0;
  std::uint8_t dead_white_ = 0;
};

}  // namespace luaspy
