#include "luastate/locate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t chunk_words = 64;  // number of stack words tested in one batch
constexpr int chain_limit = 1024;

// Index of the entry for an address's page in a table of Locator::most_unreadable.
std::size_t unreadable_slot(Address address) { return (address / smallest_page * 0x9e3779b97f4a7c15) >> 56; }

}  // namespace

void Locator::try_rows(std::vector<const Lua*> rows) {
  rows_ = std::move(rows);
  short_rows_ = std::ranges::any_of(rows_, [](const Lua* row) { return row->state().short_reference; });
  seen_states_.clear();
  doubts_left_ = most_doubts;
}

void Locator::forget() {
  known_.clear();
  short_states_ = false;
  seen_states_.clear();
}

void Locator::set_space(const AddressSpace& space) {
  constexpr Address short_limit = Address{1} << 32;
  ranges_.clear();
  unreadable_.assign(most_unreadable, {});
  lowest_ = ~Address{0}, highest_ = highest_short_ = 0;
  for (const Mapping& mapping : space.mappings()) {
    const bool special = mapping.path.starts_with('[') && !mapping.path.starts_with("[heap") &&
                         !mapping.path.starts_with("[anon");  // [vvar], [vdso]
    const bool may_become_writable = mapping.inode == 0 && !mapping.shared && !mapping.executable && !special;
    const Range::Use use = mapping.writable && mapping.readable ? Range::Use::writable
                           : may_become_writable                ? Range::Use::reserved
                                                                : Range::Use::no_data;
    if (!ranges_.empty() && ranges_.back().end == mapping.start && ranges_.back().use == use)
      ranges_.back().end = mapping.end;
    else ranges_.push_back({mapping.start, mapping.end, use});
    if (use == Range::Use::no_data) continue;
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

const Locator::Range* Locator::range_of(Address word) const {
  const auto after = std::ranges::upper_bound(ranges_, word, {}, &Range::start);
  return after == ranges_.begin() || word >= std::prev(after)->end ? nullptr : &*std::prev(after);
}

bool Locator::worth_reading(Address word) const {
  const Range* const range = range_of(word);
  if (range == nullptr || range->use == Range::Use::writable) return true;
  if (range->use == Range::Use::no_data) return false;
  const Unreadable& known = unreadable_[unreadable_slot(word)];
  return known.page != page_start(word) || known.again_at <= looks_;
}

void Locator::record_unreadable(Address word) {
  const Range* const range = range_of(word);
  if (range == nullptr || range->use != Range::Use::reserved) return;
  constexpr unsigned most_doublings = 10;
  Unreadable& known = unreadable_[unreadable_slot(word)];
  if (known.page != page_start(word)) known = {page_start(word), 0, 0};
  known.again_at = looks_ + (1u << known.failures);
  known.failures = std::min(known.failures + 1, most_doublings);
}

std::size_t Locator::slot_of(Address word) const {
  const std::size_t mask = seen_states_.size() - 1;
  std::size_t at = word * 0x9e3779b97f4a7c15 >> 32 & mask;
  while (seen_states_[at] != 0 && seen_states_[at] != word) at = (at + 1) & mask;
  return at;
}

void Locator::remember_state(Address word) {
  if (has_been_state(word)) return;
  ++generation_;
  if (2 * ++seen_count_ > seen_states_.size()) {
    constexpr std::size_t most = 1 << 14;  // a program may make states without end
    std::vector<Address> old(2 * seen_states_.size());
    old.swap(seen_states_);
    if (seen_states_.size() > most) forget_states(), old.clear();
    for (const Address state : old) {
      if (state != 0) seen_states_[slot_of(state)] = state;
    }
  }
  seen_states_[slot_of(word)] = word;
}

void Locator::forget_states() {
  constexpr std::size_t few = 1 << 8;
  ++generation_;
  seen_states_.assign(few, 0);
  seen_count_ = 1;
}

bool Locator::is_met(Address word) const {
  return std::ranges::find(chunk_, word) != chunk_.end() ||
         std::ranges::find(candidates_, word, &Candidate::L) != candidates_.end();
}

void Locator::leave_out(Address word) {
  if (room_.left_out == 0) return;
  --room_.left_out;
  left_out_.words.push_back(word);
}

void Locator::defer(Address word) {
  if (room_.deferred == 0) return leave_out(word);
  --room_.deferred;
  deferred_->push_back(word);
}

// Decides what to do with a stack word that a lua_State could be at; most words are not, and the
// caller has filtered those. True: the word is known to have been a state, and is looked at.
bool Locator::observe(const Memory& memory, Address word, bool as_before, const ThreadStack& stack, Unknown unknown) {
  const Address place = word - stack.start;
  const bool on_stack = place < stack.bytes.size() && stack.bytes.size() - place >= state_head_size;
  const bool seen = has_been_state(word);
  // Words that are as before are asked again while there is a doubt, as many as there is room for.
  if (!seen && as_before && (!asks_again_ || room_.unknown == 0)) return false;
  if (!seen && !on_stack && !worth_reading(word)) return false;
  // What the stack refers to on itself was read with it. Most of that is no state, which is seen at
  // once. It may be one: beyond the end of a fiber's stack, where that is not known yet, is the heap.
  const std::span<const std::byte> head = on_stack ? stack.bytes.subspan(place, state_head_size)
                                                   : std::span<const std::byte>();
  if (on_stack && std::ranges::none_of(rows_, [&](const Lua* row) {
        return load<std::uint8_t>(head, row->state().tt) == row->state().tag &&
               plausible_pointer(row->state().global_of(head));
      }))
    return false;
  if (room_.words != 0) --room_.words;
  if (is_met(word)) return seen;
  if (seen && room_.known == 0) {
    // One that has not run at the last look needs new frames to run, and these mention it, too.
    if (!as_before) leave_out(word);
    return false;
  }
  if (!seen && (unknown == Unknown::defer || room_.unknown == 0)) {
    if (as_before) --room_.unknown;
    if (unknown == Unknown::defer && !as_before) defer(word);
    else leave_out(word);
    return false;
  }
  --(seen ? room_.known : room_.unknown);
  if (on_stack) add_candidate(memory, word, head);
  else chunk_.push_back(word);
  return seen;
}

// A look of ordinary length reads some 10 words and compares some 500. Reading 32 states takes some
// 50 µs, recognising 16 takes 150 µs, comparing 8,192 words 200 µs.
const Locator::Room Locator::bounded_room = {
    .words = 8192, .known = 32, .strange = 16, .unknown = 128, .deferred = 256, .left_out = 4096};
const Locator::Room Locator::complete_room = {.words = ~std::size_t{0},
                                              .known = 4096,
                                              .strange = 1 << 16,
                                              .unknown = 1 << 16,
                                              .deferred = 1 << 16,
                                              .left_out = 1 << 20};

const Lua* Locator::lua_of(const Memory& memory, Address L, std::span<const std::byte> head, Address& G) {
  for (const Lua* const row : rows_) {
    const StateFields& fields = row->state();
    if (load<std::uint8_t>(head, fields.tt) != fields.tag) continue;
    G = fields.global_of(head);
    if (const auto known = known_.find(G); known != known_.end()) {
      if (known->second->state().global_of(head) == G) return known->second;
      continue;
    }
    if (!plausible_pointer(G)) continue;
    if (room_.strange == 0) {
      leave_out(L);
      return nullptr;
    }
    --room_.strange;
    doubtful_ = true;
    constexpr std::size_t most_known = 4096;  // a program may make states without end
    if (known_.size() >= most_known) known_.clear();
    const Lua* const found = row->recognise(memory, L, head);
    if (found == nullptr) continue;
    doubtful_ = false;
    return known_[G] = found;
  }
  return nullptr;
}

bool Locator::is_state(const Memory& memory, const ActiveState& state) {
  std::array<std::byte, state_head_size> head;
  const StateFields& fields = state.lua->state();
  return memory.read(state.L, head) && load<std::uint8_t>(head, fields.tt) == fields.tag &&
         fields.global_of(head) == state.G;
}

// Tests in one batch whether the words in chunk_ are pointers to lua_States. A snapshot keeps the
// memory of those that have been states.
void Locator::collect(const Memory& memory, Unknown unknown) {
  std::array<std::array<std::byte, state_head_size>, chunk_words> heads;
  std::array<Memory::Request, chunk_words> requests;
  std::size_t count = 0;
  for (const Address word : chunk_) {
    if (has_been_state(word)) {
      std::array<std::byte, state_head_size> head;
      if (memory.read(word, head)) add_candidate(memory, word, head);
      else if (unknown == Unknown::defer) deferred_->push_back(word);
    } else {
      requests[count] = {word, heads[count], false};
      ++count;
    }
  }
  chunk_.clear();
  memory.read_batch(std::span(requests).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i].done) add_candidate(memory, requests[i].address, heads[i]);
    else record_unreadable(requests[i].address);
  }
}

void Locator::add_candidate(const Memory& memory, Address L, std::span<const std::byte> head) {
  Address G = 0;
  const Lua* const lua = lua_of(memory, L, head, G);
  if (lua == nullptr) return;
  remember_state(L);
  const StateFields& fields = lua->state();
  short_states_ |= fields.short_reference;
  const Address anchor = memory.get<Address>(L + fields.anchor).value_or(0);
  candidates_.push_back({L, G, anchor & ~fields.anchor_flags, lua, anchor == 0 && lua->is_unprotected(memory, L)});
}

std::vector<Address> Locator::find_missed(const Memory& memory, const ThreadStack& stack,
                                          std::span<const Address> deferred, const LeftOut& left_out,
                                          const Mentions& mentions,
                                          const std::function<bool(Address)>& is_known) const {
  std::vector<Address> found, idle;
  const auto runs_here = [&](const StateFields& fields, const Lua& lua, Address L) {
    const Address anchor = memory.get<Address>(L + fields.anchor).value_or(0) & ~fields.anchor_flags;
    return anchor != 0 ? anchor - stack.start < stack.bytes.size() : lua.is_unprotected(memory, L);
  };
  const auto judge = [&](std::vector<Address> words, bool any) {
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::erase_if(words,
                  [&](Address word) { return std::ranges::find(mentions.states, word) != mentions.states.end(); });
    std::array<std::array<std::byte, state_head_size>, chunk_words> heads;
    std::array<Memory::Request, chunk_words> requests;
    for (std::size_t at = 0; at < words.size() && found.size() < most_states; at += chunk_words) {
      const std::size_t count = std::min(chunk_words, words.size() - at);
      for (std::size_t i = 0; i < count; ++i) requests[i] = {words[at + i], heads[i], false};
      memory.read_batch(std::span(requests).first(count));
      for (std::size_t i = 0; i < count && found.size() < most_states; ++i) {
        if (!requests[i].done) continue;
        const Address L = words[at + i];
        for (const Lua* const row : rows_) {
          const StateFields& fields = row->state();
          if (load<std::uint8_t>(heads[i], fields.tt) != fields.tag) continue;
          const Address G = fields.global_of(heads[i]);
          if (!is_known(G) && (!plausible_pointer(G) || row->recognise(memory, L, heads[i]) == nullptr)) continue;
          if (runs_here(fields, *row, L)) found.push_back(L);
          else if (any) idle.push_back(L);
          break;
        }
      }
    }
  };
  judge({deferred.begin(), deferred.end()}, true);
  std::vector<Address> words = left_out.words;
  const auto add = [&](Address word) {
    if (word - lowest_ >= highest_ - lowest_ || word % 8 != 0) return;
    const Range* const range = range_of(word);
    if (range == nullptr || range->use != Range::Use::no_data) words.push_back(word);
  };
  const std::size_t first = left_out.stack == 0 ? stack.bytes.size() : left_out.stack - stack.start;
  for (std::size_t at = first; at + 8 <= stack.bytes.size(); at += 8) {
    const auto word = load<Address>(stack.bytes, at);
    add(word);
    if (short_rows_) add(word & 0xffffffff), add(word >> 32);
  }
  judge(std::move(words), false);
  constexpr std::size_t most_idle = 16;  // that ran then, or are of a pool: more take too long in the next stop
  idle.resize(std::min({idle.size(), most_idle, most_states - found.size()}));
  found.insert(found.end(), idle.begin(), idle.end());
  return found;
}

void Locator::locate(const StoppedThread& thread, const LastLook& last, Unknown unknown,
                     std::vector<ActiveState>& active, std::vector<Address>& deferred, Effort effort) {
  const Memory& memory = thread.memory;
  const ThreadStack &stack = thread.stack, &before = last.stack;
  const Mentions* const before_mentions = last.mentions;
  active.clear();
  candidates_.clear();
  chunk_.clear();
  deferred.clear();
  deferred_ = &deferred;
  unprotected_.clear();
  guessed_ = false;
  mentions_.places.clear();
  mentions_.states.clear();
  mentions_.generation = 0;
  left_out_.words.clear();
  left_out_.stack = 0;
  const Room& room = effort == Effort::complete ? complete_room : bounded_room;
  room_ = room;
  ++looks_;
  if (rows_.empty()) return;
  if (seen_states_.empty()) forget_states();
  // While a stack moves, a row may fail to fit for an instant. What looked like a state is then
  // asked again, at any place of the stack, but not without end.
  asks_again_ = std::exchange(doubtful_, false) && doubts_left_ > 0;
  if (asks_again_) --doubts_left_;
  // What was no state when it was first seen at its place may have become one there. A prime: threads are looked at by
  // turns, and each has its turn to be asked.
  constexpr std::uint64_t ask_anew = 257;  // looks
  asks_again_ |= looks_ % ask_anew == 0;
  const bool short_references = short_states_ || (short_rows_ && unknown == Unknown::read);
  const auto in_range = [&](Address word) { return word - lowest_ < highest_ - lowest_ && word % 8 == 0; };
  const auto in_short_range = [&](Address word) {
    return word >= lowest_address && word >= lowest_ && word < highest_short_ && word % 8 == 0;
  };
  const auto consider = [&](Address word, const auto& as_before) {
    bool mentions = in_range(word) && observe(memory, word, as_before(), stack, unknown);
    if (!short_references) return mentions;
    if (in_short_range(word & 0xffffffff)) mentions |= observe(memory, word & 0xffffffff, as_before(), stack, unknown);
    if (in_short_range(word >> 32)) mentions |= observe(memory, word >> 32, as_before(), stack, unknown);
    return mentions;
  };
  if (before_mentions != nullptr) {
    for (const Address L :
         std::span(before_mentions->states).first(std::min(before_mentions->states.size(), most_states))) {
      if (is_met(L)) continue;
      chunk_.push_back(L);
      if (chunk_.size() == chunk_words) collect(memory, unknown);
    }
    collect(memory, unknown);
    room_.strange = room.strange;  // those that were missed must not keep others from being recognised
  }
  const auto consider_register = [&](unsigned number) {
    if (thread.registers.knows(number)) consider(thread.registers[number], [] { return false; });
  };
  std::ranges::for_each(machine_.callee_saved, consider_register);
  // Functions of the VM get L as their first argument, some callbacks as their second.
  std::ranges::for_each(std::span(machine_.first_arguments).first(2), consider_register);
  collect(memory, unknown);
  Address from = stack.start;  // start of the innermost frames not yet given to a state
  std::size_t at = 0;          // bytes of the stack already scanned
  // Most of a stack is unchanged and mentions no state: this is checked block by block. The result
  // of the previous look is not used if more states are known now.
  constexpr std::size_t block = 64;
  const std::uint64_t generation = generation_;
  const bool skips = !asks_again_ && before_mentions != nullptr && before_mentions->generation == generation;
  const std::vector<Address> nowhere;
  const std::vector<Address>& mentioned = skips ? before_mentions->places : nowhere;
  auto next_mentioned = mentioned.begin();
  const auto is_dull = [&](Address limit) {
    const Address from_here = stack.start + at, place = from_here - before.start;
    if (!skips || from_here % block != 0 || from_here + block > limit || at + block > stack.bytes.size()) return false;
    if (place >= before.bytes.size() || before.bytes.size() - place < block) return false;
    while (next_mentioned != mentioned.end() && *next_mentioned < from_here) ++next_mentioned;
    if (next_mentioned != mentioned.end() && *next_mentioned < from_here + block) return false;
    return std::memcmp(stack.bytes.data() + at, before.bytes.data() + place, block) == 0;
  };
  const auto scan_below = [&](Address limit) {
    while (stack.start + at < limit && at + 8 <= stack.bytes.size() && chunk_.size() + 3 <= chunk_words) {
      if (is_dull(limit)) {
        at += block;
        continue;
      }
      if (room_.words == 0 || room_.left_out == 0) {
        left_out_.stack = stack.start + at;
        at = stack.bytes.size();
        break;
      }
      const Address word = load<Address>(stack.bytes, at), place = stack.start + at - before.start;
      const auto as_before = [&] {
        return place < before.bytes.size() && place + 8 <= before.bytes.size() &&
               load<Address>(before.bytes, place) == word;
      };
      if (consider(word, as_before)) mentions_.places.push_back(stack.start + at);
      at += 8;
    }
    if (!chunk_.empty()) collect(memory, unknown);
  };
  while (active.size() < most_states) {
    // The stop rule: a state further in has its longjmp record, and its luaD_rawrunprotected frame
    // that mentions it, below the best one so far.
    const Candidate* best = nullptr;
    for (;;) {
      best = nullptr;
      for (const Candidate& candidate : candidates_) {
        if (candidate.anchor >= from && candidate.anchor < stack.end() &&
            (best == nullptr || candidate.anchor < best->anchor))
          best = &candidate;
      }
      const Address limit = best != nullptr ? best->anchor : stack.end();
      if (stack.start + at >= limit || at + 8 > stack.bytes.size()) break;
      scan_below(std::min(limit, stack.start + at + 8 * chunk_words));
    }
    if (best == nullptr) break;
    // The last anchor of the chain is in the frame that entered this state.
    const StateFields& fields = best->lua->state();
    Address outermost = best->anchor;
    for (int i = 0; i < chain_limit; ++i) {
      const Address previous = memory.get<Address>(outermost + fields.anchor_previous).value_or(0) &
                               ~fields.anchor_flags;
      if (previous <= outermost || previous >= stack.end()) break;
      outermost = previous;
    }
    from = outermost + 8;
    active.push_back({best->L, best->G, best->lua, from, best->anchor});
    mentions_.states.push_back(best->L);
  }
  // Otherwise, words that were seen before may be states.
  if (generation_ == generation) mentions_.generation = generation;
  constexpr std::size_t most_unprotected = 16;
  for (const Candidate& candidate : candidates_) {
    if (candidate.unprotected && unprotected_.size() < most_unprotected)
      unprotected_.push_back({candidate.L, candidate.G, candidate.lua, stack.end()});
  }
  for (const ActiveState& state : unprotected_) {
    if (mentions_.states.size() < most_states) mentions_.states.push_back(state.L);
  }
  if (!active.empty()) return;
  // A host that calls lua_call without protection leaves errorJmp NULL. Then the main thread runs,
  // if anything does.
  for (const Candidate& candidate : candidates_) {
    const Address main = candidate.lua->main_thread(memory, candidate.G);
    if (main == 0 || !candidate.lua->is_unprotected(memory, main)) continue;
    active.push_back({main, candidate.G, candidate.lua, stack.end()});
    guessed_ = true;
    return;
  }
}

}  // namespace luaspy
