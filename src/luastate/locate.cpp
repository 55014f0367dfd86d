#include "luastate/locate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t chunk_words = 64;  // number of stack words tested in one batch
constexpr int chain_limit = 1024;

// What one locate() may do: words that it compares with known states, known states that it reads, states of unknown
// global_States that it recognises, other words that it reads; and how many words it keeps for find_missed().
struct Room {
  std::size_t words = 0, known = 0, strange = 0, unknown = 0, deferred = 0, left_out = 0;
};
// A look of ordinary length reads some 10 words and compares some 500. Reading 32 states takes some
// 50 µs, recognising 16 takes 150 µs, comparing 8,192 words 200 µs.
constexpr Room bounded_room = {
    .words = 8192, .known = 32, .strange = 16, .unknown = 128, .deferred = 256, .left_out = 4096};
constexpr Room complete_room = {.words = ~std::size_t{0},
                                .known = 4096,
                                .strange = 1 << 16,
                                .unknown = 1 << 16,
                                .deferred = 1 << 16,
                                .left_out = 1 << 20};

}  // namespace

void Locator::try_layouts(std::vector<const Lua*> layouts) {
  layouts_ = std::move(layouts);
  short_layouts_ = std::ranges::any_of(layouts_, [](const Lua* layout) { return layout->state().short_reference; });
  seen_.clear();
  doubt_ = {.pending = true};  // the last looks did not know what a state looks like
}

void Locator::forget() {
  known_.clear();
  short_states_ = false;
  seen_.clear();
}

bool Locator::is_state(const Memory& memory, const ActiveState& state) {
  std::array<std::byte, state_head_size> head;
  const StateFields& fields = state.lua->state();
  return memory.read(state.L, head) && load<std::uint8_t>(head, fields.tt) == fields.tag &&
         fields.global_of(head) == state.G;
}

// A walk over the words of a stack, from its innermost frame outwards.
class Locator::Scan {
 public:
  Scan(Locator& locator, const StoppedThread& thread, const LastLook& last, Unknown unknown,
       std::vector<Address>& deferred, Effort effort)
      : its_(locator),
        memory_(thread.memory),
        registers_(thread.registers),
        stack_(thread.stack),
        before_(last.stack),
        before_mentions_(last.mentions),
        unknown_(unknown),
        deferred_(deferred),
        all_room_(effort == Effort::complete ? complete_room : bounded_room),
        room_(all_room_),
        asks_again_(asks_again(locator)),
        short_references_(its_.short_states_ || (its_.short_layouts_ && unknown == Unknown::read)),
        from_(stack_.start) {}

  // Appends to `active` the states that have an anchor, innermost first.
  void find(std::vector<ActiveState>& active);

 private:
  static bool asks_again(Locator& locator);
  void look_at_last_states();
  void look_at_registers();
  const Candidate* next_state();
  const Candidate* best_candidate() const;
  void scan_below(Address limit);
  bool is_dull(Address limit);
  template <typename AsBefore>
  bool consider(Address word, const AsBefore& as_before);
  bool observe(Address word, bool as_before);
  void collect();
  void add_candidate(Address L, std::span<const std::byte> head);
  const Lua* lua_of(Address L, std::span<const std::byte> head, Address& G);
  Address outermost_anchor(const Candidate& state) const;
  bool is_met(Address word) const;
  void leave_out(Address word);
  void defer(Address word);

  Locator& its_;
  const Memory& memory_;
  const Registers& registers_;
  const ThreadStack &stack_, &before_;
  const Mentions* const before_mentions_;
  const Unknown unknown_;
  std::vector<Address>& deferred_;
  const Room& all_room_;
  Room room_;
  const bool asks_again_, short_references_;
  bool skips_ = false;         // what is as in the previous look
  std::size_t mentioned_ = 0;  // of the places of the previous look: those before are further in
  Address from_;               // start of the innermost frames not yet given to a state
  std::size_t at_ = 0;         // bytes of the stack already scanned
};

// While a stack moves, a layout may fail to fit for an instant. What looked like a state is then asked again, at any
// place of the stack, but not without end. And what was no state when it was first seen at its place may have become
// one there. A prime: threads are looked at by turns, and each has its turn to be asked.
bool Locator::Scan::asks_again(Locator& locator) {
  constexpr std::uint64_t ask_anew = 257;  // looks
  const bool doubts = std::exchange(locator.doubt_.pending, false) && locator.doubt_.left > 0;
  if (doubts) --locator.doubt_.left;
  return doubts || locator.places_.looks() % ask_anew == 0;
}

bool Locator::Scan::is_met(Address word) const {
  return std::ranges::find(its_.chunk_, word) != its_.chunk_.end() ||
         std::ranges::find(its_.candidates_, word, &Candidate::L) != its_.candidates_.end();
}

void Locator::Scan::leave_out(Address word) {
  if (room_.left_out == 0) return;
  --room_.left_out;
  its_.left_out_.words.push_back(word);
}

void Locator::Scan::defer(Address word) {
  if (room_.deferred == 0) return leave_out(word);
  --room_.deferred;
  deferred_.push_back(word);
}

// Decides what to do with a stack word that a lua_State could be at; most words are not, and the
// caller has filtered those. True: the word is known to have been a state, and is looked at.
bool Locator::Scan::observe(Address word, bool as_before) {
  const Address place = word - stack_.start;
  const bool on_stack = place < stack_.bytes.size() && stack_.bytes.size() - place >= state_head_size;
  const bool seen = its_.seen_.contains(word);
  // Words that are as before are asked again while there is a doubt, as many as there is room for.
  if (!seen && as_before && (!asks_again_ || room_.unknown == 0)) return false;
  if (!seen && !on_stack && !its_.places_.worth_reading(word)) return false;
  // What the stack refers to on itself was read with it. Most of that is no state, which is seen at
  // once. It may be one: beyond the end of a fiber's stack, where that is not known yet, is the heap.
  const std::span<const std::byte> head = on_stack ? stack_.bytes.subspan(place, state_head_size)
                                                   : std::span<const std::byte>();
  if (on_stack && std::ranges::none_of(its_.layouts_, [&](const Lua* layout) {
        return load<std::uint8_t>(head, layout->state().tt) == layout->state().tag &&
               plausible_pointer(layout->state().global_of(head));
      }))
    return false;
  if (room_.words != 0) --room_.words;
  if (is_met(word)) return seen;
  if (seen && room_.known == 0) {
    // One that has not run at the last look needs new frames to run, and these mention it, too.
    if (!as_before) leave_out(word);
    return false;
  }
  if (!seen && (unknown_ == Unknown::defer || room_.unknown == 0)) {
    if (as_before) --room_.unknown;
    if (unknown_ == Unknown::defer && !as_before) defer(word);
    else leave_out(word);
    return false;
  }
  --(seen ? room_.known : room_.unknown);
  if (on_stack) add_candidate(word, head);
  else its_.chunk_.push_back(word);
  return seen;
}

const Lua* Locator::Scan::lua_of(Address L, std::span<const std::byte> head, Address& G) {
  for (const Lua* const layout : its_.layouts_) {
    const StateFields& fields = layout->state();
    if (load<std::uint8_t>(head, fields.tt) != fields.tag) continue;
    G = fields.global_of(head);
    if (const auto known = its_.known_.find(G); known != its_.known_.end()) {
      if (known->second->state().global_of(head) == G) return known->second;
      continue;
    }
    if (!plausible_pointer(G)) continue;
    if (room_.strange == 0) {
      leave_out(L);
      return nullptr;
    }
    --room_.strange;
    its_.doubt_.pending = true;
    constexpr std::size_t most_known = 4096;  // a program may make states without end
    if (its_.known_.size() >= most_known) its_.known_.clear();
    const Lua* const found = layout->recognise(memory_, L, head);
    if (found == nullptr) continue;
    its_.doubt_.pending = false;
    return its_.known_[G] = found;
  }
  return nullptr;
}

// Tests in one batch whether the words in chunk_ are pointers to lua_States. A snapshot keeps the
// memory of those that have been states.
void Locator::Scan::collect() {
  std::array<std::array<std::byte, state_head_size>, chunk_words> heads;
  std::array<Memory::Request, chunk_words> requests;
  std::size_t count = 0;
  for (const Address word : its_.chunk_) {
    if (its_.seen_.contains(word)) {
      std::array<std::byte, state_head_size> head;
      if (memory_.read(word, head)) add_candidate(word, head);
      else if (unknown_ == Unknown::defer) deferred_.push_back(word);
    } else {
      requests[count] = {word, heads[count], false};
      ++count;
    }
  }
  its_.chunk_.clear();
  memory_.read_batch(std::span(requests).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i].done) add_candidate(requests[i].address, heads[i]);
    else its_.places_.record_unreadable(requests[i].address);
  }
}

void Locator::Scan::add_candidate(Address L, std::span<const std::byte> head) {
  Address G = 0;
  const Lua* const lua = lua_of(L, head, G);
  if (lua == nullptr) return;
  its_.seen_.add(L);
  its_.short_states_ |= lua->state().short_reference;
  const Address anchor = lua->anchor(memory_, L);
  its_.candidates_.push_back({L, G, anchor, lua, anchor == 0 && lua->is_unprotected(memory_, L)});
}

template <typename AsBefore>
bool Locator::Scan::consider(Address word, const AsBefore& as_before) {
  const StateMemory& places = its_.places_;
  bool mentions = places.in_range(word) && observe(word, as_before());
  if (!short_references_) return mentions;
  const Address low = word & 0xffffffff, high = word >> 32;
  if (places.in_short_range(low)) mentions |= observe(low, as_before());
  if (places.in_short_range(high)) mentions |= observe(high, as_before());
  return mentions;
}

void Locator::Scan::look_at_last_states() {
  if (before_mentions_ == nullptr) return;
  const std::vector<Address>& states = before_mentions_->states;
  for (const Address L : std::span(states).first(std::min(states.size(), most_states))) {
    if (is_met(L)) continue;
    its_.chunk_.push_back(L);
    if (its_.chunk_.size() == chunk_words) collect();
  }
  collect();
  room_.strange = all_room_.strange;  // those that were missed must not keep others from being recognised
}

void Locator::Scan::look_at_registers() {
  const auto look_at = [&](unsigned number) {
    if (registers_.knows(number)) consider(registers_[number], [] { return false; });
  };
  std::ranges::for_each(its_.machine_.callee_saved, look_at);
  // Functions of the VM get L as their first argument, some callbacks as their second.
  std::ranges::for_each(std::span(its_.machine_.first_arguments).first(2), look_at);
  collect();
}

// Most of a stack is unchanged and mentions no state: this is checked block by block.
bool Locator::Scan::is_dull(Address limit) {
  constexpr std::size_t block = 64;
  const Address from_here = stack_.start + at_, place = from_here - before_.start;
  if (!skips_ || from_here % block != 0 || from_here + block > limit || at_ + block > stack_.bytes.size()) return false;
  if (place >= before_.bytes.size() || before_.bytes.size() - place < block) return false;
  const std::vector<Address>& mentioned = before_mentions_->places;
  while (mentioned_ < mentioned.size() && mentioned[mentioned_] < from_here) ++mentioned_;
  if (mentioned_ < mentioned.size() && mentioned[mentioned_] < from_here + block) return false;
  if (std::memcmp(stack_.bytes.data() + at_, before_.bytes.data() + place, block) != 0) return false;
  at_ += block;
  return true;
}

void Locator::Scan::scan_below(Address limit) {
  while (stack_.start + at_ < limit && at_ + 8 <= stack_.bytes.size() && its_.chunk_.size() + 3 <= chunk_words) {
    if (is_dull(limit)) continue;
    if (room_.words == 0 || room_.left_out == 0) {
      its_.left_out_.stack = stack_.start + at_;
      at_ = stack_.bytes.size();
      break;
    }
    const Address word = load<Address>(stack_.bytes, at_), place = stack_.start + at_ - before_.start;
    const auto as_before = [&] {
      return place < before_.bytes.size() && place + 8 <= before_.bytes.size() &&
             load<Address>(before_.bytes, place) == word;
    };
    if (consider(word, as_before)) its_.mentions_.places.push_back(stack_.start + at_);
    at_ += 8;
  }
  if (!its_.chunk_.empty()) collect();
}

// The state whose anchor is the lowest one that was not passed.
const Locator::Candidate* Locator::Scan::best_candidate() const {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : its_.candidates_) {
    if (candidate.anchor >= from_ && candidate.anchor < stack_.end() &&
        (best == nullptr || candidate.anchor < best->anchor))
      best = &candidate;
  }
  return best;
}

// The stop rule: a state further in has its longjmp record, and its luaD_rawrunprotected frame
// that mentions it, below the best one so far.
const Locator::Candidate* Locator::Scan::next_state() {
  for (;;) {
    const Candidate* const best = best_candidate();
    const Address limit = best != nullptr ? best->anchor : stack_.end();
    if (stack_.start + at_ >= limit || at_ + 8 > stack_.bytes.size()) return best;
    scan_below(std::min(limit, stack_.start + at_ + 8 * chunk_words));
  }
}

// The last anchor of the chain is in the frame that entered this state.
Address Locator::Scan::outermost_anchor(const Candidate& state) const {
  const StateFields& fields = state.lua->state();
  Address outermost = state.anchor;
  for (int i = 0; i < chain_limit; ++i) {
    const Address previous = memory_.get<Address>(outermost + fields.anchor_previous).value_or(0) &
                             ~fields.anchor_flags;
    if (previous <= outermost || previous >= stack_.end()) break;
    outermost = previous;
  }
  return outermost;
}

void Locator::Scan::find(std::vector<ActiveState>& active) {
  look_at_last_states();
  look_at_registers();
  // The result of the previous look is not used if more states are known now.
  const std::uint64_t generation = its_.seen_.generation();
  skips_ = !asks_again_ && before_mentions_ != nullptr && before_mentions_->generation == generation;
  while (active.size() < most_states) {
    const Candidate* const state = next_state();
    if (state == nullptr) break;
    from_ = outermost_anchor(*state) + 8;
    active.push_back({state->L, state->G, state->lua, from_, state->anchor});
    its_.mentions_.states.push_back(state->L);
  }
  // Otherwise, words that were seen before may be states.
  if (its_.seen_.generation() == generation) its_.mentions_.generation = generation;
}

std::vector<Address> Locator::find_missed(const Memory& memory, const ThreadStack& stack,
                                          std::span<const Address> deferred, const LeftOut& left_out,
                                          const Mentions& mentions,
                                          const std::function<bool(Address)>& is_known) const {
  std::vector<Address> found, idle;
  const auto runs_here = [&](const Lua& lua, Address L) {
    const Address anchor = lua.anchor(memory, L);
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
        for (const Lua* const layout : layouts_) {
          const StateFields& fields = layout->state();
          if (load<std::uint8_t>(heads[i], fields.tt) != fields.tag) continue;
          const Address G = fields.global_of(heads[i]);
          if (!is_known(G) && (!plausible_pointer(G) || layout->recognise(memory, L, heads[i]) == nullptr)) continue;
          if (runs_here(*layout, L)) found.push_back(L);
          else if (any) idle.push_back(L);
          break;
        }
      }
    }
  };
  judge({deferred.begin(), deferred.end()}, true);
  std::vector<Address> words = left_out.words;
  const auto add = [&](Address word) {
    if (places_.in_range(word) && places_.may_hold_state(word)) words.push_back(word);
  };
  const std::size_t first = left_out.stack == 0 ? stack.bytes.size() : left_out.stack - stack.start;
  for (std::size_t at = first; at + 8 <= stack.bytes.size(); at += 8) {
    const auto word = load<Address>(stack.bytes, at);
    add(word);
    if (short_layouts_) add(word & 0xffffffff), add(word >> 32);
  }
  judge(std::move(words), false);
  constexpr std::size_t most_idle = 16;  // that ran then, or are of a pool: more take too long in the next stop
  idle.resize(std::min({idle.size(), most_idle, most_states - found.size()}));
  found.insert(found.end(), idle.begin(), idle.end());
  return found;
}

void Locator::locate(const StoppedThread& thread, const LastLook& last, Unknown unknown,
                     std::vector<ActiveState>& active, std::vector<Address>& deferred, Effort effort) {
  const ThreadStack& stack = thread.stack;
  active.clear();
  candidates_.clear();
  chunk_.clear();
  deferred.clear();
  unprotected_.clear();
  guessed_ = false;
  mentions_.places.clear();
  mentions_.states.clear();
  mentions_.generation = 0;
  left_out_.words.clear();
  left_out_.stack = 0;
  places_.begin_look();
  if (layouts_.empty()) return;
  Scan(*this, thread, last, unknown, deferred, effort).find(active);
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
    const Address main = candidate.lua->main_thread(thread.memory, candidate.G);
    if (main == 0 || !candidate.lua->is_unprotected(thread.memory, main)) continue;
    active.push_back({main, candidate.G, candidate.lua, stack.end()});
    guessed_ = true;
    return;
  }
}

}  // namespace luaspy
