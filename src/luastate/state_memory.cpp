#include "luastate/state_memory.h"

#include <algorithm>

namespace luaspy {

void StateMemory::set_space(const AddressSpace& space) {
  constexpr Address short_limit = Address{1} << 32;
  ranges_.clear();
  unreadable_.assign(most_unreadable, {});
  lowest_ = ~Address{0}, highest_ = highest_short_ = 0;
  for (const Mapping& mapping : space.mappings()) {
    const bool special = mapping.path.starts_with('[') && !mapping.path.starts_with("[heap") &&
                         !mapping.path.starts_with("[anon");  // [vvar], [vdso]
    const bool may_become_writable = mapping.inode == 0 && !mapping.shared && !mapping.executable && !special;
    const Use use = mapping.writable && mapping.readable ? Use::writable
                    : may_become_writable                ? Use::reserved
                                                         : Use::no_data;
    if (!ranges_.empty() && ranges_.back().end == mapping.start && ranges_.back().use == use)
      ranges_.back().end = mapping.end;
    else ranges_.push_back({mapping.start, mapping.end, use});
    if (use == Use::no_data) continue;
    lowest_ = std::min(lowest_, mapping.start);
    highest_ = std::max(highest_, mapping.end);
    if (mapping.start < short_limit) highest_short_ = std::max(highest_short_, mapping.end);
  }
  // Memory is mapped all the time, near the existing memory, but not that much.
  constexpr Address room = Address{1} << 36, short_room = 1 << 28;
  lowest_ = std::max(lowest_ - std::min(lowest_, short_room), lowest_address);
  highest_ = std::min(highest_ + room, address_limit);
  highest_short_ += short_room;
}

const StateMemory::Range* StateMemory::range_of(Address word) const {
  const auto after = std::ranges::upper_bound(ranges_, word, {}, &Range::start);
  return after == ranges_.begin() || word >= std::prev(after)->end ? nullptr : &*std::prev(after);
}

std::size_t StateMemory::slot_of(Address word) { return (word / smallest_page * 0x9e3779b97f4a7c15) >> 56; }

bool StateMemory::may_hold_state(Address word) const {
  const Range* const range = range_of(word);
  return range == nullptr || range->use != Use::no_data;
}

bool StateMemory::worth_reading(Address word) const {
  const Range* const range = range_of(word);
  if (range == nullptr || range->use == Use::writable) return true;
  if (range->use == Use::no_data) return false;
  const Unreadable& known = unreadable_[slot_of(word)];
  return known.page != page_start(word) || known.again_at <= looks_;
}

void StateMemory::record_unreadable(Address word) {
  const Range* const range = range_of(word);
  if (range == nullptr || range->use != Use::reserved) return;
  constexpr unsigned most_doublings = 10;
  Unreadable& known = unreadable_[slot_of(word)];
  if (known.page != page_start(word)) known = {page_start(word), 0, 0};
  known.again_at = looks_ + (1u << known.failures);
  known.failures = std::min(known.failures + 1, most_doublings);
}

}  // namespace luaspy
