#include "heap/coroutine_list.h"

#include <algorithm>
#include <array>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t links_kept = 4096;

bool is_thread_there(const Lua& lua, Address G, std::uint8_t dead_white, std::span<const std::byte> bytes) {
  const StateFields& fields = lua.state();
  return load<std::uint8_t>(bytes, fields.tt) == fields.tag && fields.global_of(bytes) == G &&
         (load<std::uint8_t>(bytes, fields.marked) & dead_white) == 0;
}

// Reaches up to the reference to the global_State in every row.
constexpr std::size_t head_size = 40;

}  // namespace

bool CoroutineList::has(const Memory& memory, const CollectorState& collector, Address L) const {
  std::array<std::byte, head_size> bytes;
  return memory.read(L, bytes) && is_thread_there(*lua_, G_, collector.dead_white, bytes);
}

bool CoroutineList::flipped() {
  const CollectorState now = lua_->collector(*live_, G_);
  return now.known && std::exchange(dead_white_, now.dead_white) != now.dead_white;
}

void CoroutineList::check_all(const std::vector<Address>& threads, std::unordered_set<Address>& gone) {
  constexpr std::size_t most = 1024;
  std::vector<std::array<std::byte, head_size>> heads(std::min(most, threads.size()));
  std::vector<Memory::Request> requests(heads.size());
  for (std::size_t from = 0; from < threads.size(); from += most) {
    const std::size_t count = std::min(most, threads.size() - from);
    for (std::size_t i = 0; i < count; ++i) requests[i] = {threads[from + i], heads[i], false};
    live_->read_batch(std::span(requests).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (!requests[i].done || !is_thread_there(*lua_, G_, dead_white_, heads[i])) gone.insert(threads[from + i]);
    }
  }
}

bool CoroutineList::check() {
  constexpr int tries = 4;
  if (!flipped()) return true;
  for (int i = 0; i < tries; ++i) {
    std::unordered_set<Address> gone;
    check_all(threads_, gone);
    if (flipped()) continue;  // dead by one white is alive by the other
    std::erase_if(threads_, [&](Address L) { return gone.contains(L); });
    for (const Address L : gone) known_.erase(L);
    return true;
  }
  return false;
}

void CoroutineList::add(const ThreadList& list) {
  for (const Address L : list.threads) {
    if (known_.insert(L).second) threads_.push_back(L);
  }
}

void CoroutineList::remember(std::vector<std::pair<Address, Address>>& links) {
  if (links.size() == links_kept || first_links_.size() > 4 * links_kept) first_links_.clear();
  for (const auto& [object, next] : links) first_links_[object] = next;
}

bool CoroutineList::read_all(HeapCopy& pieces, const std::function<void(std::int64_t)>& told) {
  constexpr std::int64_t between_checks = 4096;  // objects; takes less than a millisecond
  (void)flipped();
  ThreadList list;
  std::vector<std::pair<Address, Address>> links;
  std::int64_t seen = 0;
  bool one_white = true;
  ListWalk how;
  how.refresh = [&](Address object) { pieces.refresh(object); };
  how.live = live_;
  how.visit = [&](Address object, Address next) {
    if (links.size() < links_kept) links.push_back({object, next});
    if (++seen % between_checks == 0) {
      if (flipped()) one_white = false;
      if (told) told(seen);
    }
    return one_white;
  };
  list_threads(pieces, *lua_, G_, lua_->first_object(*live_, G_), how, list);
  objects_ = list.objects;
  garbage_ = list.dead_threads;
  threads_.clear();
  known_.clear();
  first_links_.clear();
  one_white = one_white && !flipped();
  if (!one_white) return false;
  add(list);
  remember(links);
  return list.complete;
}

bool CoroutineList::read_new(const Memory& memory, std::int64_t most) {
  // After this many consecutive links that are unchanged, the rest of the list is known. A single
  // one may match by chance, where freed memory has become a new object.
  constexpr int enough = 16;
  std::vector<std::pair<Address, Address>> links;
  int as_before = 0;
  ListWalk how;
  how.most = most;
  how.visit = [&](Address object, Address next) {
    const auto known = first_links_.find(object);
    as_before = known != first_links_.end() && known->second == next ? as_before + 1 : 0;
    if (links.size() < links_kept) links.push_back({object, next});
    return as_before < enough;
  };
  ThreadList list;
  list_threads(memory, *lua_, G_, lua_->first_object(memory, G_), how, list);
  new_objects_ = list.objects;
  add(list);
  if (list.complete) remember(links);  // else there would be a gap in what is known
  return list.complete;
}

}  // namespace luaspy
