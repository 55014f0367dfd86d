#include "luastate/collector.h"

#include <algorithm>
#include <array>
#include <bit>

namespace luaspy {
namespace {

// The last objects visited, to return to a place where the list could still be trusted.
class Trail {
 public:
  void add(Address object) { objects_[slot(count_++)] = object; }
  std::int64_t count() const { return count_; }
  // Goes back up to `n` objects, as far as they are known. Returns the object to continue with; 0
  // if there is none.
  Address go_back(std::int64_t n, const std::function<void(Address)>& refresh) {
    const std::int64_t known = std::min<std::int64_t>({n, count_, size});
    for (std::int64_t i = 0; i < known; ++i) refresh(objects_[slot(count_ - 1 - i)]);
    count_ -= known;
    return known != 0 ? objects_[slot(count_)] : 0;
  }

 private:
  static constexpr std::int64_t size = 4096;
  static std::size_t slot(std::int64_t i) { return static_cast<std::size_t>(i % size); }
  std::array<Address, size> objects_;
  std::int64_t count_ = 0;
};

// How far it has come since its last atomic step; nullopt: it is about to come to one, or right after it.
std::optional<std::ptrdiff_t> place_in_cycle(std::string_view phase) {
  // Each Lua has some of them, in this order.
  constexpr std::string_view order[] = {"GCSsweepstring", "GCSsweepudata", "GCSsweep",    "GCSswpallgc",
                                        "GCSswpfinobj",   "GCSswptobefnz", "GCSswpend",   "GCSfinalize",
                                        "GCScallfin",     "GCSpause",      "GCSpropagate"};
  const auto* const place = std::ranges::find(order, phase);
  return place != std::end(order) ? std::optional(place - std::begin(order)) : std::nullopt;
}

CollectorPhase phase_of(std::string_view name) {
  if (name == "GCSpause") return CollectorPhase::pause;
  if (name == "GCSpropagate") return CollectorPhase::marking;
  if (name == "GCSenteratomic" || name == "GCSatomic" || name == "GCSinsideatomic") return CollectorPhase::atomic;
  if (name == "GCSfinalize" || name == "GCScallfin") return CollectorPhase::finalizing;
  return CollectorPhase::sweeping;
}

}  // namespace

// What ends a cycle early, a full collection, goes back in it, too: then that comes to its atomic step next.
bool shows_atomic_step(const CollectorState& before, const CollectorState& now) {
  if (!before.known || !now.known) return false;
  if (before.dead_white != now.dead_white) return true;
  const std::optional<std::ptrdiff_t> from = place_in_cycle(before.phase), to = place_in_cycle(now.phase);
  if (!from || !to || before.mode != "incremental" || now.mode != "incremental") return false;
  if (*to < *from) return true;
  if (!before.estimate || !now.estimate) return false;
  const bool sweeps = before.phase != "GCSpause" && before.phase != "GCSpropagate";
  return sweeps ? *now.estimate > *before.estimate : *now.estimate != *before.estimate;
}

std::optional<HeapReading> read_heap(const Memory& memory, const LuaHeap& lua, Address G) {
  const CollectorState collector = lua.collector(memory, G);
  const bool one_white = std::has_single_bit(collector.dead_white);  // both: the state is being closed
  if (!collector.known || collector.bytes < 0 || collector.bytes > HeapReading::most_bytes || !one_white) return {};
  return HeapReading{G, collector.bytes, phase_of(collector.phase), collector.dead_white};
}

void list_threads(const Memory& memory, const Lua& lua, Address G, Address object, const ListWalk& how,
                  ThreadList& list) {
  constexpr int most_breaks = 64;
  list = {};
  const CollectorState collector = lua.collector(memory, G);
  Trail trail;
  // For each thread found, the number of objects before it.
  std::vector<std::int64_t> at;
  int breaks = 0;
  // R. P. Brent's test for a cycle: an object at a power of two is seen again.
  Address landmark = 0;
  std::int64_t steps = 0, next_landmark = 1;
  while (object != 0) {
    ObjectHead head;
    bool good = lua.read_head(memory, object, head) && (!head.is_thread || lua.is_thread_of(memory, object, G));
    // The youngest object is in the list before its type is set (lj_gc.c, lj_mem_newgco).
    if (!good && trail.count() == 0 && plausible_pointer(head.next)) good = true, head.is_thread = false;
    if (object == landmark || ++steps > how.most) return;
    if (!good) {
      if (!how.refresh || ++breaks > most_breaks) return;
      how.refresh(object);
      object = trail.go_back(std::int64_t{1} << std::min(breaks, 12), how.refresh);
      while (!at.empty() && at.back() >= trail.count()) at.pop_back(), list.threads.pop_back();
      list.objects = trail.count();
      landmark = 0;
      if (object == 0) object = lua.first_object(how.live != nullptr ? *how.live : memory, G);
      if (object == 0) return;
      continue;
    }
    if (steps == next_landmark) landmark = object, next_landmark *= 2;
    if (head.is_thread) {
      if (collector.is_dead(head.marked)) {
        ++list.dead_threads;
      } else {
        list.threads.push_back(object);
        at.push_back(trail.count());
      }
    }
    trail.add(object);
    ++list.objects;
    if (how.visit && !how.visit(object, head.next)) break;
    object = head.next;
  }
  list.complete = true;
}

}  // namespace luaspy
