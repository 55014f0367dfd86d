#include "luastate/state_places.h"

#include <algorithm>

namespace luaspy {

StatePlaces::Owner StatePlaces::owner(const NativeFrame& execute, std::span<const Address> states, std::size_t expected,
                                      const Memory& stack) {
  constexpr std::size_t most_functions = 64;
  constexpr std::uint32_t most_frames = 1 << 20, enough_frames = 8;
  if (by_function_.size() >= most_functions && !by_function_.contains(execute.function)) by_function_.clear();
  Evidence& evidence = by_function_[execute.function];
  std::size_t best = none, best_state = none;
  const std::span<const std::uint8_t> callee_saved = machine_.callee_saved;
  const std::size_t registers = callee_saved.size();
  std::size_t place_of_expected = none;  // the first one
  const auto nearly_always = [&](std::size_t place) {
    return evidence.hits[place] >= enough_frames &&
           10 * std::uint64_t{evidence.hits[place]} >= 9 * std::uint64_t{evidence.frames};
  };
  Address another = 0;  // what the place has that nearly always held one of the states, if that is none of them
  const auto look_at = [&](std::size_t place, Address value) {
    const auto found = value != 0 ? std::ranges::find(states, value) : states.end();
    if (found == states.end()) {
      if (nearly_always(place)) another = value;
      return;
    }
    const auto state = static_cast<std::size_t>(found - states.begin());
    if (state == expected && place_of_expected == none) place_of_expected = place;
    ++evidence.hits[place];
    if (best == none || evidence.hits[place] > evidence.hits[best])
      best = place, best_state = state;  // of equal places the first: registers
  };
  for (std::size_t i = 0; i < registers; ++i) {
    if (execute.registers.knows(callee_saved[i])) look_at(i, execute.registers[callee_saved[i]]);
  }
  std::array<Address, frame_slots> slots{};
  const std::size_t count = execute.cfa > execute.sp
                                ? std::min<std::size_t>((execute.cfa - execute.sp) / 8, frame_slots)
                                : 0;
  if (stack.read(execute.cfa - 8 * count, std::as_writable_bytes(std::span(slots).first(count)))) {
    for (std::size_t i = 0; i < count; ++i) look_at(registers + i, slots[count - 1 - i]);
  }
  if (best != none && ++evidence.frames >= most_frames) {
    for (std::uint32_t& hits : evidence.hits) hits /= 2;
    evidence.frames /= 2;
  }
  const bool certain = best != none && nearly_always(best);
  if (another != 0 && !certain) return {.another = another};
  if (best == none) return {};
  // A register's value is in use; a slot may contain the leftover of an earlier call.
  const bool mentions_expected = place_of_expected != none && (place_of_expected < registers || best >= registers);
  if (!certain && mentions_expected) best_state = expected;
  return {.state = best_state, .certain = certain};
}

}  // namespace luaspy
