#pragma once
// Finds the state that a luaV_execute frame runs. luaV_execute needs its argument L until it
// returns, so L is in a callee-saved register or in a slot of the frame, at the same place in every
// frame of one build. The place is learned: it holds a running state in every frame. Other places
// do so only by chance, in unused slots with leftovers of earlier calls.

#include <array>
#include <span>
#include <unordered_map>

#include "arch/machine.h"
#include "base/frame.h"
#include "base/memory.h"

namespace luaspy {

class StatePlaces {
 public:
  // `machine`: the target's; it must outlive this.
  explicit StatePlaces(const Machine& machine) : machine_(machine) {}

  static constexpr std::size_t none = ~std::size_t{0};
  struct Owner {
    std::size_t state = none;  // index into the states given
    bool certain = false;      // found at a place that nearly always held a running state
    // What that place has, if it is none of the states given: either the frame belongs to another
    // state, or it has just begun. 0: not so.
    Address another = 0;
  };

  // The state, of those that run, to which the frame belongs. `expected`, an index or `none`, is
  // accepted until the place is certain, if the frame mentions it in a place as good as any other.
  Owner owner(const NativeFrame& execute, std::span<const Address> states, std::size_t expected, const Memory& stack);

 private:
  static constexpr std::size_t frame_slots = 256;  // words searched below the CFA: gcc -O0 needs some 170
  static constexpr std::size_t places = Machine::most_callee_saved + frame_slots;
  struct Evidence {
    std::array<std::uint32_t, places> hits{};
    std::uint32_t frames = 0;
  };
  const Machine& machine_;
  std::unordered_map<Address, Evidence> by_function_;  // by start of luaV_execute
};

}  // namespace luaspy
