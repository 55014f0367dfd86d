#include "top/top_heaps.h"

namespace luaspy {

void TopHeaps::add(int pid, std::int64_t at_ns, const std::vector<HeapReading>& heaps) {
  for (const HeapReading& heap : heaps) {
    if (const std::optional<HeapChange> change = changes_.observe(pid, heap)) add(at_ns, *change);
  }
}

void TopHeaps::end(int pid, std::int64_t at_ns) {
  for (const HeapChange& change : changes_.end(pid)) add(at_ns, change);
}

void TopHeaps::add(std::int64_t at_ns, const HeapChange& change) {
  bytes_.resize(changes_.states().size());
  total_ += change.bytes - bytes_[change.state];
  bytes_[change.state] = change.bytes;
  for (HeapTrack* const track : {&recent_, &all_}) track->add(at_ns, total_, change.phase, change.collected);
  if (window_ns_) recent_.forget_before(at_ns - *window_ns_);
}

void TopHeaps::begin(HeapTrack& track, std::int64_t now_ns) const {
  track = {};
  if (!bytes_.empty()) track.add(now_ns, total_, CollectorPhase::pause, false);
}

void TopHeaps::reset(std::int64_t now_ns) {
  begin(recent_, now_ns);
  begin(all_, now_ns);
}

std::optional<TopHeap> TopHeaps::now(std::int64_t now_ns) {
  if (window_ns_) recent_.forget_before(now_ns - *window_ns_);
  const std::optional<HeapSummary> recent = recent_.summary(now_ns), all = all_.summary(now_ns);
  if (!recent || !all) return {};
  return TopHeap{bytes_.size(), *recent, *all};
}

}  // namespace luaspy
