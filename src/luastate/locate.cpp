#include "luastate/locate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t chunk_words = 64;  // number of stack words tested in one batch
// Bytes of a lua_State that show whether it is one: up to L_G and ci in every row.
constexpr std::size_t head_size = 112;
constexpr std::size_t most_states = 256;  // active on one thread: LUAI_MAXCCALLS limits nesting to 200
constexpr int chain_limit = 1024;

// The fields needed to find a running state, in either Lua.
struct StateFields {
  Offset tt, G;  // the object's type, the reference to its global_State
  std::uint8_t tag;
  bool short_reference;
  Offset anchor;           // errorJmp, cframe
  Address anchor_flags;    // bits of it that are not part of the address
  Offset anchor_previous;  // in the object it points at: the next one outwards
};

StateFields fields_of(const Dialect& lua) {
  constexpr Address cframe_flags = 3;  // lj_frame.h: CFRAME_RESUME, CFRAME_UNWIND_FF
  if (lua.puc != nullptr) return {lua.puc->L_tt, lua.puc->L_G, lua.puc->tag_thread, false, lua.puc->L_errorJmp, 0, 0};
  const LuajitLayout& row = *lua.luajit;
  return {row.L_gct, row.L_glref, luajit::gct_thread, !row.gc64, row.L_cframe, cframe_flags, row.cframe_previous};
}

constexpr Address page_size = 4096;
Address page_of(Address address) { return address & ~(page_size - 1); }

// Index of the entry for an address's page in a table of Locator::most_unreadable.
std::size_t unreadable_slot(Address address) { return (address / page_size * 0x9e3779b97f4a7c15) >> 56; }

Address global_of(const StateFields& fields, std::span<const std::byte> bytes) {
  return fields.short_reference ? load<std::uint32_t>(bytes, fields.G) : load<Address>(bytes, fields.G);
}

// Checks whether a row fits a state: the state's main thread, read with this row, must be a thread
// of the same global state; and its stack and its CallInfo chain must be where the row says
// (lstate.h): base_ci ends the chain, and its function is the bottom of the stack. Any other row of
// the same series finds wrong fields there. Returns what does not fit, as a text (why_not.h);
// nullptr: it fits.
const char* misfit(const Memory& memory, const Layout& row, Address L, std::span<const std::byte> bytes) {
  const Address G = load<Address>(bytes, row.L_G);
  if (!plausible_pointer(G) || load<std::uint8_t>(bytes, row.L_tt) != row.tag_thread) return "its l_G is no address";
  std::optional<Address> main = G + row.G_mainthread;
  if (!row.mainthread_embedded) main = memory.get<Address>(*main);
  if (!main || !plausible_pointer(*main)) return "l_G->mainthread is no address";
  for (const Address state : {*main, L}) {
    std::array<std::byte, 256> fields;
    const auto used = std::span(fields).first(row.L_size);
    if (!memory.read(state, used)) return "it, or its main thread, cannot be read";
    if (load<std::uint8_t>(used, row.L_tt) != row.tag_thread || load<Address>(used, row.L_G) != G)
      return "its main thread is no thread of the same global_State";
    const Address stack = load<Address>(used, row.L_stack), last = load<Address>(used, row.L_stack_last),
                  ci = load<Address>(used, row.L_ci);
    if (!plausible_pointer(stack) || !plausible_pointer(last)) return "stack or stack_last is no address";
    if (!plausible_pointer(ci) || load<std::uint8_t>(used, row.L_status) > 6)
      return "ci is no address, or status is no status";
    Address base_ci = state + row.L_base_ci;
    if (row.ci_previous == no_field) base_ci = load<Address>(used, row.L_base_ci);
    if (!plausible_pointer(base_ci)) return "base_ci is no address";
    // While luaD_reallocstack moves the stack, these are offsets, or a mixture of old and new
    // values.
    const bool still = last > stack && last - stack <= (Address{1} << 30) && (last - stack) % 16 == 0 &&
                       memory.get<Address>(base_ci + row.ci_func) == stack;
    if (row.ci_previous == no_field) {
      if (!still || ci < base_ci || (ci - base_ci) % row.ci_size != 0)
        return "the function of base_ci is not the bottom of the stack, or ci is not in the array of base_ci";
      continue;
    }
    if (memory.get<Address>(base_ci + row.ci_previous) != Address{0}) return "base_ci is not the first CallInfo";
    if (still) continue;
    // The stack is being moved. Then something was called, and its CallInfo is linked both ways.
    const Address next = memory.get<Address>(base_ci + row.ci_next).value_or(0);
    if (!plausible_pointer(next) || memory.get<Address>(next + row.ci_previous) != base_ci)
      return "the function of base_ci is not the bottom of the stack";
  }
  return nullptr;
}

bool fits(const Memory& memory, const Layout& row, Address L, std::span<const std::byte> bytes) {
  return misfit(memory, row, L, bytes) == nullptr;
}
// Is it calling something, with no protected call below? A state that waits to be resumed has a
// status (ldo.c, lua_yield), and so does one that an error has ended. One that is not started or
// has returned is at base_ci.
bool is_unprotected(const Memory& memory, const Layout& row, Address L) {
  const std::optional<std::uint8_t> status = memory.get<std::uint8_t>(L + row.L_status);
  const std::optional<Address> ci = memory.get<Address>(L + row.L_ci),
                               errorJmp = memory.get<Address>(L + row.L_errorJmp);
  std::optional<Address> base_ci = L + row.L_base_ci;
  if (row.ci_previous == no_field) base_ci = memory.get<Address>(*base_ci);
  return status == std::uint8_t{0} && errorJmp == Address{0} && ci && base_ci && *ci != *base_ci;
}

// lua_close frees the registry's table before the global_State, whose contents may remain.
bool has_registry(const Memory& memory, const Layout& row, Address G) {
  constexpr std::uint8_t table = 5, collectable = 64;  // LUA_TTABLE (lua.h); BIT_ISCOLLECTABLE (lobject.h), from 5.2 on
  std::array<std::byte, 16> value;
  if (!memory.read(G + row.G_registry, value)) return false;
  const Address registry = load<Address>(value, 0);
  if ((load<std::uint8_t>(value, 8) & ~collectable) != table || !plausible_pointer(registry)) return false;
  return memory.get<std::uint8_t>(registry + row.L_tt) == table;
}

}  // namespace

const char* misfit(const Memory& memory, const Layout& row, Address L) {
  std::array<std::byte, head_size> head;
  if (!memory.read(L, head)) return "it cannot be read";
  if (load<std::uint8_t>(head, row.L_tt) != row.tag_thread) return "it has not the type of a thread";
  return misfit(memory, row, L, head);
}

void Locator::try_rows(std::vector<Dialect> rows) {
  rows_ = std::move(rows);
  short_rows_ = std::ranges::any_of(rows_,
                                    [](const Dialect& row) { return row.luajit != nullptr && !row.luajit->gc64; });
  seen_states_.clear();
  doubts_left_ = most_doubts;
}

void Locator::forget() {
  known_.clear();
  short_states_ = false;
  seen_states_.clear();
}

void Locator::know(const AddressSpace& space) {
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
  return known.page != page_of(word) || known.again_at <= looks_;
}

void Locator::note_unreadable(Address word) {
  const Range* const range = range_of(word);
  if (range == nullptr || range->use != Range::Use::reserved) return;
  constexpr unsigned most_doublings = 10;
  Unreadable& known = unreadable_[unreadable_slot(word)];
  if (known.page != page_of(word)) known = {page_of(word), 0, 0};
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

// Decides what to do with a stack word that a lua_State could be at; most words are not, and the
// caller has filtered those. True: the word is known to have been a state.
bool Locator::meet(Address word, bool as_before, const ThreadStack& stack, Unknown unknown) {
  if (word - stack.start < stack.bytes.size()) return false;
  const bool seen = has_been_state(word);
  if (!seen && (as_before || !worth_reading(word))) return false;
  if (!seen && unknown == Unknown::defer) deferred_->push_back(word);
  else if (std::ranges::find(chunk_, word) == chunk_.end() &&
           std::ranges::find(candidates_, word, &Candidate::L) == candidates_.end())
    chunk_.push_back(word);
  return seen;
}

Dialect Locator::dialect_of(const Memory& memory, Address L, std::span<const std::byte> bytes, Address& G) {
  for (const Dialect& row : rows_) {
    const StateFields fields = fields_of(row);
    if (load<std::uint8_t>(bytes, fields.tt) != fields.tag) continue;
    G = global_of(fields, bytes);
    if (const auto known = known_.find(G); known != known_.end()) {
      if (global_of(fields_of(known->second), bytes) == G) return known->second;
      continue;
    }
    if (!plausible_pointer(G)) continue;
    doubtful_ = true;
    constexpr std::size_t most_known = 4096;  // a program may make states without end
    if (known_.size() >= most_known) known_.clear();
    if (row.puc != nullptr) {
      if (!fits(memory, *row.puc, L, bytes)) continue;
      doubtful_ = false;
      return known_[G] = row;
    }
    LuajitLayout layout = *row.luajit;
    if (!find_globals(memory, L, layout)) continue;
    doubtful_ = false;
    return remember_globals(G, layout);
  }
  return {};
}

Dialect Locator::remember_globals(Address G, const LuajitLayout& layout) {
  auto same = std::ranges::find(found_, layout);
  if (same == found_.end()) same = found_.insert(found_.end(), layout);
  return known_[G] = {nullptr, &*same};
}

// lua_newstate (lstate.c) allocates the main thread and its global_State together: l_G of the main
// thread points right behind it or, in 5.5, to the object that it is inside of. LuaJIT's are parts
// of one GG_State (lj_dispatch.h). Such words are rare enough to examine each of them.
void Locator::visit_main_threads(const Memory& memory, const AddressSpace& space,
                                 const std::function<bool(const MainThread&)>& visit) const {
  constexpr std::size_t chunk = 1 << 20, most = 1 << 30, page = 4096, most_gaps = 4096;
  std::vector<std::byte> bytes(chunk);
  std::size_t read = 0, unreadable = 0;
  for (const Mapping& mapping : space.mappings()) {
    if (!mapping.writable || !mapping.readable || mapping.shared) continue;
    for (Address at = mapping.start, next; at < mapping.end && read < most; at = next) {
      auto part = std::span(bytes).first(std::min<Address>(chunk, mapping.end - at));
      const std::size_t readable = memory.read_some(at, part);
      // Continues after a page that cannot be read: thread stacks have guard pages, and may share a
      // mapping with a heap.
      next = at + part.size();
      if (readable < part.size() && ++unreadable <= most_gaps)
        next = std::min(next, (at + readable) / page * page + page);
      read += next - at;
      part = part.first(readable);
      for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
        for (const Dialect& row : rows_) {
          const StateFields fields = fields_of(row);
          const Address L = at + i - fields.G;
          const Address word = fields.short_reference ? load<std::uint32_t>(part, i) : load<Address>(part, i);
          if (row.luajit != nullptr) {
            constexpr Address smallest = 64, largest = 160;  // of a lua_State
            if (word < L + smallest || word > L + largest) continue;
            LuajitLayout layout = *row.luajit;
            if (find_globals(memory, L, layout) && layout.main_L_below == word - L && !visit({L, word, row, layout}))
              return;
            continue;
          }
          // Programs that embed Lua may add fields to the end of lua_State (tup).
          constexpr Address most_added = 64;
          if (row.puc->mainthread_embedded ? word != L - row.puc->G_mainthread
                                           : word - (L + row.puc->L_size) > most_added)
            continue;
          if (!row.puc->mainthread_embedded && memory.get<Address>(word + row.puc->G_mainthread) != L) continue;
          std::array<std::byte, head_size> head;
          if (memory.read(L, head) && fits(memory, *row.puc, L, head) && !visit({L, word, row, {}})) return;
        }
      }
    }
  }
}

Address Locator::find_main_thread(const Memory& memory, const AddressSpace& space) const {
  Address found = 0;
  visit_main_threads(memory, space, [&](const MainThread& main) {
    found = main.L;
    return false;
  });
  return found;
}

// The target runs: memory that was being written may have looked like a state. It does not when it
// is looked at again.
void Locator::find_states(const Memory& memory, const AddressSpace& space) {
  constexpr std::size_t most_found = 4096;
  std::vector<MainThread> found;
  visit_main_threads(memory, space, [&](const MainThread& main) {
    if (!known_.contains(main.G)) found.push_back(main);
    return found.size() < most_found;
  });
  for (const MainThread& main : found) {
    if (known_.contains(main.G)) continue;  // already found with a better row
    if (main.lua.luajit != nullptr) {
      LuajitLayout layout = *main.lua.luajit;
      if (find_globals(memory, main.L, layout) && layout == main.found && layout.G_gc != no_field)
        remember_globals(main.G, layout);
    } else if (has_registry(memory, *main.lua.puc, main.G) &&
               memory.get<Address>(main.L + main.lua.puc->L_G) == main.G) {
      known_[main.G] = main.lua;
    }
  }
}

bool Locator::is_state(const Memory& memory, const Activation& state) {
  std::array<std::byte, head_size> head;
  const StateFields fields = fields_of(state.lua);
  return memory.read(state.L, head) && load<std::uint8_t>(head, fields.tt) == fields.tag &&
         global_of(fields, head) == state.G;
}

// Tests in one batch whether the words in chunk_ are pointers to lua_States. A snapshot keeps the
// memory of those that have been states.
void Locator::collect(const Memory& memory, Unknown unknown) {
  std::array<std::array<std::byte, head_size>, chunk_words> heads;
  std::array<Memory::Request, chunk_words> requests;
  std::size_t count = 0;
  for (const Address word : chunk_) {
    if (has_been_state(word)) {
      std::array<std::byte, head_size> head;
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
    else note_unreadable(requests[i].address);
  }
}

void Locator::add_candidate(const Memory& memory, Address L, std::span<const std::byte> head) {
  Address G = 0;
  const Dialect lua = dialect_of(memory, L, head, G);
  if (lua == Dialect{}) return;
  remember_state(L);
  short_states_ |= lua.luajit != nullptr && !lua.luajit->gc64;
  const StateFields fields = fields_of(lua);
  const Address anchor = memory.get<Address>(L + fields.anchor).value_or(0);
  const bool unprotected = lua.puc != nullptr && anchor == 0 && is_unprotected(memory, *lua.puc, L);
  candidates_.push_back({L, G, anchor & ~fields.anchor_flags, lua, unprotected});
}

bool Locator::is_missed(const Memory& memory, std::span<const Address> deferred,
                        const std::function<bool(Address)>& is_known) const {
  std::vector<Address> words(deferred.begin(), deferred.end());
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<std::array<std::byte, head_size>, chunk_words> heads;
  std::array<Memory::Request, chunk_words> requests;
  for (std::size_t at = 0; at < words.size(); at += chunk_words) {
    const std::size_t count = std::min(chunk_words, words.size() - at);
    for (std::size_t i = 0; i < count; ++i) requests[i] = {words[at + i], heads[i], false};
    memory.read_batch(std::span(requests).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (!requests[i].done) continue;
      for (const Dialect& row : rows_) {
        const StateFields fields = fields_of(row);
        if (load<std::uint8_t>(heads[i], fields.tt) != fields.tag) continue;
        const Address G = global_of(fields, heads[i]);
        if (is_known(G)) return true;
        if (!plausible_pointer(G)) continue;
        if (row.puc != nullptr && fits(memory, *row.puc, words[at + i], heads[i])) return true;
        LuajitLayout layout = row.luajit != nullptr ? *row.luajit : LuajitLayout{};
        if (row.luajit != nullptr && find_globals(memory, words[at + i], layout)) return true;
      }
    }
  }
  return false;
}

void Locator::locate(const Memory& memory, const Registers& registers, const ThreadStack& stack,
                     const ThreadStack& before, Unknown unknown, std::vector<Activation>& active,
                     std::vector<Address>& deferred, const Mentions* before_mentions) {
  active.clear();
  candidates_.clear();
  chunk_.clear();
  deferred.clear();
  deferred_ = &deferred;
  unprotected_.clear();
  guessed_ = false;
  mentions_.places.clear();
  mentions_.generation = 0;
  ++looks_;
  if (rows_.empty()) return;
  if (seen_states_.empty()) forget_states();
  // While a stack moves, a row may fail to fit for an instant. What looked like a state is then
  // asked again, at any place of the stack, but not without end.
  const bool ask_all = std::exchange(doubtful_, false) && doubts_left_ > 0;
  if (ask_all) --doubts_left_;
  const bool short_references = short_states_ || (short_rows_ && unknown == Unknown::read);
  const auto in_range = [&](Address word) { return word - lowest_ < highest_ - lowest_ && word % 8 == 0; };
  const auto in_short_range = [&](Address word) {
    return word >= lowest_address && word >= lowest_ && word < highest_short_ && word % 8 == 0;
  };
  const auto consider = [&](Address word, const auto& as_before) {
    bool mentions = in_range(word) && meet(word, as_before(), stack, unknown);
    if (!short_references) return mentions;
    if (in_short_range(word & 0xffffffff)) mentions |= meet(word & 0xffffffff, as_before(), stack, unknown);
    if (in_short_range(word >> 32)) mentions |= meet(word >> 32, as_before(), stack, unknown);
    return mentions;
  };
  const auto consider_register = [&](unsigned number) {
    if (registers.knows(number)) consider(registers[number], [] { return false; });
  };
  std::ranges::for_each(machine_.callee_saved, consider_register);
  std::ranges::for_each(machine_.first_arguments, consider_register);
  collect(memory, unknown);
  Address from = stack.start;  // start of the innermost frames not yet given to a state
  std::size_t at = 0;          // bytes of the stack already scanned
  // Most of a stack is unchanged and mentions no state: this is checked block by block. The result
  // of the previous look is not used if more states are known now.
  constexpr std::size_t block = 64;
  const std::uint64_t generation = generation_;
  const bool skips = !ask_all && before_mentions != nullptr && before_mentions->generation == generation;
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
      const Address word = load<Address>(stack.bytes, at), place = stack.start + at - before.start;
      const auto as_before = [&] {
        return !ask_all && place < before.bytes.size() && place + 8 <= before.bytes.size() &&
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
    const StateFields fields = fields_of(best->lua);
    Address outermost = best->anchor;
    for (int i = 0; i < chain_limit; ++i) {
      const Address previous = memory.get<Address>(outermost + fields.anchor_previous).value_or(0) &
                               ~fields.anchor_flags;
      if (previous <= outermost || previous >= stack.end()) break;
      outermost = previous;
    }
    from = outermost + 8;
    active.push_back({best->L, best->G, best->lua, from});
  }
  // Otherwise, words that were seen before may be states.
  if (generation_ == generation) mentions_.generation = generation;
  constexpr std::size_t most_unprotected = 16;
  for (const Candidate& candidate : candidates_) {
    if (candidate.unprotected && unprotected_.size() < most_unprotected)
      unprotected_.push_back({candidate.L, candidate.G, candidate.lua, stack.end()});
  }
  if (!active.empty()) return;
  // A host that calls lua_call without protection leaves errorJmp NULL. Then the main thread runs,
  // if anything does.
  for (const Candidate& candidate : candidates_) {
    if (candidate.lua.puc == nullptr) continue;
    const Layout& row = *candidate.lua.puc;
    std::optional<Address> main = candidate.G + row.G_mainthread;
    if (!row.mainthread_embedded) main = memory.get<Address>(*main);
    if (!main) continue;
    if (!is_unprotected(memory, row, *main)) continue;
    active.push_back({*main, candidate.G, candidate.lua, stack.end()});
    guessed_ = true;
    return;
  }
}

}  // namespace luaspy
