#pragma once
// The coroutines of one Lua that wait, looked at again and again while the program runs. Nothing is stopped: a
// coroutine that waits does not change, so it is enough that it was at the same place when it was read twice. One that
// was somewhere else the second time is read again, with others like it, in a shorter time.
//
// Each coroutine is seen at an instant of its own, within some ms of all others. For how many wait where on average
// that makes no difference.

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "heap/coroutine_list.h"
#include "heap/coroutine_place.h"

namespace luaspy {

// The C stacks on which the threads of a process are. A coroutine that is in a call, and on whose C stack no thread is,
// waits there: as Tarantool's fibers do, and those of hosts that give each Lua a C stack of its own.
struct StacksInUse {
  bool known = false;        // of every thread; false: any coroutine that is in a call may run
  std::vector<Address> sps;  // of the threads, one each

  // Whether the coroutine with this anchor (locate.h) may run, or has resumed another one that may.
  bool may_run(const AddressSpace& space, Address anchor) const;
};

struct WaitingGroup {
  std::uint32_t number = 0;  // from 1 on: this coroutine, as long as it exists; 0: any that have no number
  Address example = 0;       // a lua_State of it
  bool has_purpose = false;  // all of it have the same
  std::int64_t count = 0;
  std::int64_t longest_ns = 0;  // for how long one of them was there in every look, with the same on its stack
};

class CoroutineWatch {
 public:
  // What a coroutine is for, by which groups are told apart besides their place; 0: nothing. Asked for each lua_State
  // that waits, in memory that look_at() gives again.
  using Purpose = std::function<std::uint64_t(const Memory&, Address L)>;

  // `live` must outlive this.
  CoroutineWatch(const Memory& live, Address G, const Lua& lua, Purpose purpose = {})
      : live_(live), G_(G), lua_(lua), list_(live, G, lua), purpose_(std::move(purpose)) {}

  // Numbers for coroutines, shared by all Luas of a recording.
  struct Numbers {
    std::uint32_t next = 1, end = 1;
  };
  // One look, at `now_ns`. Takes as long as a walk over all objects of the Lua. False: it is gone. `stacks`: as of now.
  bool look(const AddressSpace& space, const StacksInUse& stacks, std::int64_t now_ns, Numbers& numbers);

  // ---- Of the last look
  // Those with the most coroutines first.
  const std::vector<WaitingGroup>& groups() const { return groups_; }
  // Coroutines that exist, but could not be read. More if there are more than most_coroutines.
  std::int64_t unread() const { return unread_; }
  bool is_complete() const { return complete_; }           // all that were there when it began are in it
  bool sees_elsewhere() const { return sees_elsewhere_; }  // coroutines that wait on C stacks of their own
  // Some may have, but it was not known on which stacks the threads are: they are not counted.
  bool misses_elsewhere() const { return misses_elsewhere_; }
  // The coroutine as it was read; false if it cannot be told any more. `memory`: what was read of it.
  bool look_at(Address L, CoroutineLook& look, const Memory*& memory) const;

  static constexpr std::size_t most_coroutines = 200'000;

 private:
  // What one reading has found.
  struct Reading {
    bool is_read = false, waits = false;
    std::uint64_t place = 0, slots = 0;  // where it is, and what is on its stack
    std::uint64_t purpose = 0;
    bool operator==(const Reading&) const = default;
  };
  // A coroutine that was there in the last look.
  struct Known {
    std::uint64_t place = 0, slots = 0, purpose = 0, began = 0;
    std::int64_t since_ns = 0;
    std::uint32_t number = 0;
    std::uint64_t seen_in = 0;  // look
    std::uint8_t round = 0;     // its memory is in copies_[round]
    bool waits = false;
    bool is_forgotten = false;  // what it was for has ended, and it was never resumed
  };

  void find(const AddressSpace& space);
  // Reads all of `pending`; those that changed meanwhile are left in it.
  void read_round(const AddressSpace& space, std::uint8_t round, std::int64_t now_ns, Numbers& numbers);
  bool waits_elsewhere(const Memory& memory, Address L);
  Reading read(const Memory& memory, const CollectorState& collector, Address L);
  void add(Address L, const Reading& reading, std::uint8_t round, std::int64_t now_ns, Numbers& numbers);
  void make_groups(std::int64_t now_ns);

  // From rounds_to_stay on, one that never stays is taken where it is; those that could not be read have some more,
  // the last of which wait for 1 to 16 ms.
  static constexpr std::size_t rounds = 10, rounds_to_stay = 4;
  const Memory& live_;
  Address G_;
  const Lua& lua_;
  CoroutineList list_;
  Purpose purpose_;
  std::vector<std::unique_ptr<HeapCopy>> copies_;  // by round
  std::vector<Address> pending_;
  std::vector<Reading> first_;
  std::unordered_map<Address, Known> known_;
  std::vector<WaitingGroup> groups_;
  CoroutineLook look_;
  const AddressSpace* space_ = nullptr;  // these two: of the look that is made
  const StacksInUse* stacks_ = nullptr;
  bool sees_elsewhere_ = false, misses_elsewhere_ = false;
  std::vector<std::byte> slots_;
  std::uint64_t looks_ = 0;
  std::int64_t unread_ = 0;
  bool complete_ = false;
};

}  // namespace luaspy
