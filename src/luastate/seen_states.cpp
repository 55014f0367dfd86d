#include "luastate/seen_states.h"

#include <utility>

namespace luaspy {

void SeenStates::add(Address word) {
  if (contains(word)) return;
  if (2 * (count_ + 1) > slots_.size()) {
    const std::vector<Address> old = std::exchange(slots_, std::vector<Address>(2 * slots_.size()));
    if (slots_.size() > most) {
      clear();
    } else {
      for (const Address state : old) {
        if (state != 0) slots_[slot_of(state)] = state;
      }
    }
  }
  ++generation_;
  ++count_;
  slots_[slot_of(word)] = word;
}

void SeenStates::clear() {
  ++generation_;
  slots_.assign(few, 0);
  count_ = 0;
}

}  // namespace luaspy
