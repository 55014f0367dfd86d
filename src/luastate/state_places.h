#pragma once
// Whose luaV_execute a native frame is. L is an argument that luaV_execute needs until it returns,
// so it is in a callee-saved register or in a slot of the frame, at the same place in every frame
// of one build. The place is learned: it holds a running state in every frame, other places only by
// chance (what earlier calls have left in slots that are not in use).

#include <array>
#include <span>
#include <unordered_map>

#include "base/frame.h"
#include "base/memory.h"

namespace luaspy {

class StatePlaces {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  struct Owner {
    std::size_t state = none;  // index into the states given
    bool certain = false;      // at a place that has held a running state nearly always
  };

  // Which of the states that run the frame belongs to. `expected`, an index or `none`, is believed
  // until the place is certain, if the frame mentions it in as good a place as any other.
  Owner owner(const NativeFrame& execute, std::span<const Address> states, std::size_t expected, const Memory& stack);

 private:
  static constexpr std::size_t frame_slots = 256;  // words below the CFA that are looked at: gcc -O0 needs some 170
  static constexpr std::size_t places = callee_saved_registers.size() + frame_slots;
  struct Evidence {
    std::array<std::uint32_t, places> hits{};
    std::uint32_t frames = 0;
  };
  std::unordered_map<Address, Evidence> by_function_;  // start of luaV_execute
};

}  // namespace luaspy
