#include "alloc/live_blocks.h"

#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace luaspy {
namespace {

constexpr std::uint64_t every_object = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t no_place = -1;

// Places in the list, counted from its youngest object on.
using Places = std::unordered_map<Address, std::int64_t>;

Places places_of(std::span<const SampledBlock> blocks, const AgeMarks& ages, const HeapReader& reader) {
  Places places;
  for (const SampledBlock& each : blocks) places.emplace(each.use.object, no_place);
  for (const AgeMarks::Mark& mark : ages.marks()) {
    for (const Address object : mark.objects) places.emplace(object, no_place);
  }
  std::int64_t next = 0;
  (void)reader.visit_by_age(every_object, [&](Address object) {
    const auto known = places.find(object);
    if (known != places.end()) known->second = next;
    ++next;
    return true;
  });
  return places;
}

// The oldest place but one: a list that is followed while it changes may lead to an old object, once.
class Oldest {
 public:
  void add(std::int64_t place) {
    if (place > first_) second_ = std::exchange(first_, place);
    else if (place > second_ && place != first_) second_ = place;
  }
  std::int64_t place() const { return second_; }

 private:
  std::int64_t first_ = no_place, second_ = no_place;
};

bool is_same(const SampledBlock& sampled, Node node, const HeapAnalysis& heap) {
  const HeapObject object = heap.graph().object(node);
  if (!is_same_type(object.type, *sampled.use.type) || !heap.is_live(node)) return false;
  if (sampled.use.is_part) return has_part(object, sampled.block, heap.memory(), heap.lua(), heap.reader());
  if (sampled.use.text != 0 && text_mark(heap.memory(), heap.lua(), object.address) != sampled.use.text) return false;
  const std::optional<HeapObject> now = heap.reader().object_at(object.address, false);
  return now && (now->size == sampled.block.size || object.type == ObjectType::thread);
}

}  // namespace

void AgeMarks::look(std::int64_t at_ns, const HeapReader& reader) {
  if (youngest_ != 0) add(reader);
  youngest_ = 0;
  if (at_ns < next_ns_) return;
  youngest_ = reader.youngest();
  from_ns_ = at_ns;
  next_ns_ = at_ns + each_ns_;
}

// What is before the object in the list that was the youngest. If that is not there any more, nothing
// is known: older objects may have followed then.
void AgeMarks::add(const HeapReader& reader) {
  constexpr std::uint64_t most = 4096;
  Mark mark{from_ns_, {}};
  bool found = false;
  (void)reader.visit_by_age(most, [&](Address object) {
    found = object == youngest_;
    if (!found) mark.objects.push_back(object);
    return !found;
  });
  if (!found || mark.objects.empty()) return;
  objects_ += mark.objects.size();
  marks_.push_back(std::move(mark));
  thin_out();
}

// Every second one is enough for a recording that long.
void AgeMarks::thin_out() {
  constexpr std::size_t most = 4 << 20;  // 32 MiB
  if (objects_ < most) return;
  std::vector<Mark> kept;
  for (std::size_t i = 1; i < marks_.size(); i += 2) kept.push_back(std::move(marks_[i]));
  marks_ = std::move(kept);
  objects_ = std::accumulate(marks_.begin(), marks_.end(), std::size_t{0},
                             [](std::size_t sum, const Mark& each) { return sum + each.objects.size(); });
  each_ns_ *= 2;
}

std::vector<bool> made_later(std::span<const AgedPlaces> sampled, std::span<const AgedPlaces> marks) {
  std::vector<bool> later(sampled.size(), false);
  Oldest oldest;  // of what was made after a sample
  auto mark = marks.rbegin();
  for (std::size_t i = sampled.size(); i-- > 0;) {
    for (; mark != marks.rend() && mark->from_ns > sampled[i].from_ns; ++mark) {
      for (const std::int64_t place : mark->places) oldest.add(place);
    }
    const std::int64_t place = sampled[i].places.front();
    later[i] = place >= 0 && place < oldest.place();
  }
  return later;
}

std::vector<Fate> fates_of(std::span<const SampledBlock> blocks, const AgeMarks& ages, const HeapAnalysis& heap) {
  // Without the collector's colours, what is dead cannot be told from what lives.
  if (!heap.lua().collector(heap.memory(), heap.global_state()).known)
    return std::vector(blocks.size(), Fate::not_known);
  const Places places = places_of(blocks, ages, heap.reader());
  std::vector<AgedPlaces> sampled, marks;
  for (const SampledBlock& each : blocks) sampled.push_back({each.at_ns, {places.at(each.use.object)}});
  for (const AgeMarks::Mark& each : ages.marks()) {
    AgedPlaces& mark = marks.emplace_back(AgedPlaces{each.from_ns, {}});
    for (const Address object : each.objects) mark.places.push_back(places.at(object));
  }
  const std::vector<bool> later = made_later(sampled, marks);
  std::vector<Fate> fates(blocks.size(), Fate::gone);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockUse& use = blocks[i].use;
    if (!use.type || use.object == 0 || !heap.reader().keeps_order(*use.type)) {
      fates[i] = Fate::not_known;
      continue;
    }
    const std::optional<Node> node = heap.graph().find(blocks[i].use.object);
    if (!node && !heap.graph().is_complete()) fates[i] = Fate::not_known;  // it may be where the list was not followed
    else if (!later[i] && node && is_same(blocks[i], *node, heap)) fates[i] = Fate::in_use;
  }
  return fates;
}

}  // namespace luaspy
