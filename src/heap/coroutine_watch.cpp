#include "heap/coroutine_watch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "luastate/coroutine.h"

namespace luaspy {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;
constexpr WalkLimits limits{60, 60, true};  // of calls, for places: deeper stacks differ in their ends

std::uint64_t hash_of(const void* bytes, std::size_t size) {
  return std::hash<std::string_view>()({static_cast<const char*>(bytes), size});
}

std::uint64_t began_of(const CoroutineLook& look) { return look.began.is_lua() ? look.began.proto : look.began.key; }

}  // namespace

// Neighbouring stacks are mappings of their own: pages that are not to be touched lie between them.
bool StacksInUse::may_run(const AddressSpace& space, Address anchor) const {
  const Mapping* const stack = space.find(anchor);
  return !known || stack == nullptr || std::ranges::any_of(sps, [&](Address sp) { return stack->contains(sp); });
}

bool CoroutineWatch::look(const AddressSpace& space, const StacksInUse& stacks, std::int64_t now_ns, Numbers& numbers) {
  groups_.clear();
  space_ = &space, stacks_ = &stacks;
  sees_elsewhere_ = misses_elsewhere_ = false;
  unread_ = 0;
  if (!lua_.is_thread_of(live_, lua_.main_thread(live_, G_), G_)) return false;
  ++looks_;
  find(space);
  for (std::uint8_t round = 0; round < rounds; ++round) {
    if (copies_.size() == round) copies_.push_back(std::make_unique<HeapCopy>(live_, most_bytes));
    if (pending_.empty()) continue;
    // A thread that has lost its CPU while it resumes a coroutine leaves it half resumed until it has one again.
    if (round > rounds_to_stay)
      std::this_thread::sleep_for(std::chrono::milliseconds(1 << (round - rounds_to_stay - 1)));
    read_round(space, round, now_ns, numbers);
  }
  unread_ += static_cast<std::int64_t>(pending_.size());
  std::erase_if(known_, [&](const auto& each) { return each.second.seen_in != looks_; });
  make_groups(now_ns);
  return true;
}

// If the collector is too fast for a walk, those that were known last are asked.
void CoroutineWatch::find(const AddressSpace& space) {
  constexpr int readings = 6;
  HeapCopy pieces(live_, most_bytes);
  pieces.set_space(space);
  complete_ = false;
  for (int i = 0; i < readings && !complete_; ++i) {
    if (i != 0) pieces.start(true);
    complete_ = list_.read_all(pieces);
  }
  pending_ = list_.threads();
  if (!complete_) {
    for (const auto& [L, known] : known_) pending_.push_back(L);
    std::ranges::sort(pending_);
    // clang 14 cannot use ranges::unique.
    pending_.erase(std::unique(pending_.begin(), pending_.end()), pending_.end());
  }
  std::erase(pending_, lua_.main_thread(live_, G_));
  std::erase(pending_, lua_.finalizer_thread(live_, G_));
  if (pending_.size() <= most_coroutines) return;
  unread_ += static_cast<std::int64_t>(pending_.size() - most_coroutines);
  pending_.resize(most_coroutines);
}

void CoroutineWatch::read_round(const AddressSpace& space, std::uint8_t round, std::int64_t now_ns, Numbers& numbers) {
  constexpr std::size_t few_bytes = 64 << 20;
  // It keeps its pieces, also those of memory that nobody uses any more.
  if (copies_[round]->kept_bytes() > few_bytes + 4 * copies_[round]->used_bytes())
    copies_[round] = std::make_unique<HeapCopy>(live_, most_bytes);
  HeapCopy& copy = *copies_[round];
  copy.set_space(space);
  copy.start(true);
  CollectorState collector = lua_.collector(copy, G_);
  for (const Address L : pending_) (void)read(copy, collector, L);
  copy.copy();
  first_.clear();
  collector = lua_.collector(copy, G_);
  for (const Address L : pending_) first_.push_back(read(copy, collector, L));
  copy.copy();
  collector = lua_.collector(copy, G_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Address L = pending_[i];
    const Reading second = read(copy, collector, L);
    // It may have run in between, and be there again.
    const bool is_there_still = first_[i].is_read && first_[i].waits == second.waits &&
                                first_[i].place == second.place && first_[i].purpose == second.purpose;
    // One that never stays is where it was last, unless it was resumed in these very µs.
    const bool is_last = round + std::size_t{1} >= rounds_to_stay;
    if (second.is_read && (is_there_still || is_last)) add(L, second, round, now_ns, numbers);
    else pending_[kept++] = L;
  }
  pending_.resize(kept);
  copy.seal();
}

bool CoroutineWatch::waits_elsewhere(const Memory& memory, Address L) {
  const Address anchor = lua_.anchor(memory, L);
  if (anchor == 0) return false;
  misses_elsewhere_ |= !stacks_->known;
  if (stacks_->may_run(*space_, anchor)) return false;
  return sees_elsewhere_ = true;
}

CoroutineWatch::Reading CoroutineWatch::read(const Memory& memory, const CollectorState& collector, Address L) {
  constexpr Address most_slots = 4 << 10;  // bytes
  Reading reading;
  Situation now;
  if (!list_.has(memory, collector, L) || !lua_.situation(memory, G_, L, now) ||
      !look_at_coroutine(memory, {lua_, G_, L, Active::no}, limits, look_))
    return reading;
  reading.is_read = true;
  reading.waits = look_.status == CoroutineStatus::suspended || look_.status == CoroutineStatus::not_started ||
                  (look_.status == CoroutineStatus::elsewhere && waits_elsewhere(memory, L));
  if (!reading.waits) return reading;
  const CoroutineSignature signature = signature_of(look_);
  reading.place = hash_of(signature.data(), signature.size() * sizeof signature.front());
  if (purpose_) reading.purpose = purpose_(memory, L);
  if (now.top <= now.first) return reading;
  slots_.resize(std::min(now.top - now.first, most_slots));
  if (!memory.read(now.top - slots_.size(), slots_)) return Reading{};
  reading.slots = hash_of(slots_.data(), slots_.size());
  return reading;
}

void CoroutineWatch::add(Address L, const Reading& reading, std::uint8_t round, std::int64_t now_ns, Numbers& numbers) {
  const std::uint64_t began = reading.waits ? began_of(look_) : 0;
  const auto [place, is_new] = known_.try_emplace(L);
  Known& known = place->second;
  const bool is_another = reading.waits && known.began != 0 && known.began != began;  // at the same address
  if (is_new || is_another) known = {};
  const bool as_before = known.waits && known.place == reading.place && known.slots == reading.slots &&
                         known.seen_in + 1 == looks_;
  if (!as_before) known.since_ns = now_ns, known.is_forgotten = false;
  else if (known.purpose != 0 && known.purpose != reading.purpose) known.is_forgotten = true;
  known.place = reading.place, known.slots = reading.slots, known.purpose = reading.purpose;
  known.waits = reading.waits;
  if (reading.waits) known.began = began;
  known.seen_in = looks_;
  known.round = round;
  if (reading.waits && known.number == 0 && numbers.next < numbers.end) known.number = numbers.next++;
}

void CoroutineWatch::make_groups(std::int64_t now_ns) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> by_place;
  for (const auto& [L, known] : known_) {
    if (!known.waits) continue;
    std::size_t at = groups_.size();
    const std::uint64_t purpose = known.is_forgotten ? 0 : known.purpose;
    if (known.number == 0) at = by_place.try_emplace({known.place, purpose}, at).first->second;
    if (at == groups_.size()) groups_.push_back({known.number, L, purpose != 0, 0, 0});
    ++groups_[at].count;
    groups_[at].longest_ns = std::max(groups_[at].longest_ns, now_ns - known.since_ns);
  }
  std::ranges::sort(groups_, [](const WaitingGroup& a, const WaitingGroup& b) {
    return std::pair(b.count, a.example) < std::pair(a.count, b.example);
  });
}

bool CoroutineWatch::look_at(Address L, CoroutineLook& look, const Memory*& memory) const {
  const auto known = known_.find(L);
  if (known == known_.end()) return false;
  memory = copies_[known->second.round].get();
  return look_at_coroutine(*memory, {lua_, G_, L, Active::no}, limits, look);
}

}  // namespace luaspy
