#pragma once
// Which fiber of Tarantool a thread runs: --label fiber. A struct fiber has the address and the size of its C stack,
// and a pointer to its name, which is right behind that pointer if it is short (src/lib/core/fiber.h, from 2.3 on;
// before, names are always there). Where in the struct that is differs from version to version, and is found by what it
// says: a pointer to its fiber is on each fiber's stack. Other objects may look like a fiber of one stack, and not like
// those of two.

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class TarantoolFibers {
 public:
  // Whether the program exports a function of this name. Asked for once, after a stop.
  using Exports = std::function<bool(const char* function)>;
  explicit TarantoolFibers(Exports exports) : exports_(std::move(exports)) {}

  // In the stop: touches what value() needs. Only what learn() has made known is looked for.
  void touch(const Memory& memory, Address sp) const;
  struct Stop {
    Address sp = 0;
    std::span<const std::byte> stack;  // what was read of it, from `sp` on
    const Memory& memory;              // all that was read
    bool has_lua = false;              // Lua runs there
  };
  // After it: the name; "(unknown)" where it cannot be read; "" if this is no Tarantool, or a stack on which Lua has
  // never run. `live`: the memory as it is now.
  std::string value(const Stop& stop, const Memory& live);

  bool has_learned() const { return !new_fibers_.empty(); }
  // No stop may be in touch() meanwhile.
  void learn();
  // The process has become another program.
  void forget() { *this = TarantoolFibers(exports_); }

 private:
  // Where a struct fiber has them: bytes from its begin. The same for all.
  struct Places {
    Address stack = 0, name = 0;
    bool operator==(const Places&) const = default;
  };
  struct Fiber {
    Address at = 0, stack = 0;  // its stack's begin
  };
  using Fibers = std::map<Address, Fiber>;  // by the end of its stack
  static const Fiber* running(const Fibers& fibers, Address sp);
  using Room = std::array<char, 256>;  // fiber.h, FIBER_NAME_MAX and a zero
  // "": it cannot be read, or the fiber has another stack now. In the stop: touches it.
  std::string_view name_of(const Memory& memory, const Fiber& fiber, Address sp, Room& room) const;
  // What would be a fiber, if fibers have these places.
  struct Guess {
    Places places;
    Fiber fiber;
    Address stack_end = 0;
  };
  // The one with the smallest stack.
  static std::optional<Guess> guess(const Memory& live, Address fiber, Address sp);
  void learn_places(const Guess& found);
  std::optional<Fiber> find(const Stop& stop, const Memory& live);

  Exports exports_;
  std::optional<bool> is_tarantool_;
  std::vector<Guess> guesses_;  // of the first stacks, one each
  std::optional<Places> places_;
  Fibers fibers_, new_fibers_;
  int failures_ = 0;  // searches that have found nothing
};

}  // namespace luaspy
