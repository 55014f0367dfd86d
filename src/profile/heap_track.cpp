#include "profile/heap_track.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr double shortest_s = 0.5;  // a shorter time tells nothing about rates

}  // namespace

std::optional<HeapChange> HeapChanges::observe(int pid, const HeapReading& reading) {
  const auto found = known_.find({pid, reading.G});
  if (found == known_.end()) {
    if (states_.size() == most_states) return {};
    const auto number = static_cast<std::uint32_t>(states_.size());
    states_.push_back({pid, reading.G});
    known_.emplace(std::pair(pid, reading.G), Known{number, reading});
    return HeapChange{number, reading.bytes, reading.phase, false};
  }
  auto& [number, last] = found->second;
  const bool collected = reading.dead_white != last.dead_white;
  const bool same = !collected && reading.bytes == last.bytes && reading.phase == last.phase;
  last = reading;
  if (same) return {};
  return HeapChange{number, reading.bytes, reading.phase, collected};
}

std::vector<HeapChange> HeapChanges::end(int pid) {
  std::vector<HeapChange> gone;
  for (auto& [at, known] : known_) {
    if (at.first != pid || known.last.bytes == 0) continue;
    known.last.bytes = 0;
    gone.push_back({known.number, 0, CollectorPhase::pause, false});
  }
  return gone;
}

void HeapTrack::add(std::int64_t at_ns, std::int64_t bytes, CollectorPhase phase, bool collected) {
  const std::int64_t cycles = (points_.empty() ? 0 : points_.back().cycles) + (collected ? 1 : 0);
  const std::int64_t at = points_.empty() ? at_ns : std::max(at_ns, points_.back().end_ns);
  points_.push_back({at, at, bytes, bytes, bytes, phase, cycles});
  if (width_ns_ != 0 || points_.size() > most_points) join();
}

// Joins the last two points if they are of the same time; or all, with a greater width, if there are
// too many.
void HeapTrack::join() {
  const auto joins = [&](Point& before, const Point& next) {
    if (before.start_ns / width_ns_ != next.start_ns / width_ns_) return false;
    before.end_ns = next.end_ns;
    before.least = std::min(before.least, next.least);
    before.most = std::max(before.most, next.most);
    before.last = next.last, before.phase = next.phase, before.cycles = next.cycles;
    return true;
  };
  if (points_.size() <= most_points) {
    if (points_.size() >= 2 && joins(points_[points_.size() - 2], points_.back())) points_.pop_back();
    return;
  }
  const std::int64_t span = points_.back().start_ns - points_.front().start_ns;
  width_ns_ = std::max<std::int64_t>(2 * width_ns_, span / (std::int64_t{most_points} / 2) + 1);
  auto kept = points_.begin();
  for (auto next = kept + 1; next != points_.end(); ++next) {
    if (!joins(*kept, *next)) *++kept = *next;
  }
  points_.erase(kept + 1, points_.end());
}

void HeapTrack::for_each_value(const std::function<void(std::int64_t at_ns, std::int64_t bytes)>& see) const {
  for (const Point& point : points_) {
    if (point.end_ns != point.start_ns) {
      see(point.start_ns, point.least);
      see(point.start_ns + (point.end_ns - point.start_ns) / 2, point.most);
    }
    see(point.end_ns, point.last);
  }
}

void HeapTrack::forget_before(std::int64_t ns) {
  const auto behind = std::ranges::upper_bound(points_, ns, {}, &Point::start_ns);
  if (behind == points_.begin()) return;
  const auto first = behind - 1;
  if (first != points_.begin()) cycles_before_ = (first - 1)->cycles;
  points_.erase(points_.begin(), first);
  Point& known = points_.front();
  if (known.end_ns > ns) return;
  cycles_before_ = known.cycles;
  known.start_ns = known.end_ns = ns;
  known.least = known.most = known.last;
}

std::optional<HeapSummary> HeapTrack::summary(std::int64_t until_ns) const {
  if (points_.empty()) return {};
  const Point &first = points_.front(), &last = points_.back();
  HeapSummary summary = {.last = last.last, .least = first.least, .most = first.most};
  const std::int64_t begin = first.start_ns, end = std::max(until_ns, last.end_ns), middle = begin + (end - begin) / 2;
  std::int64_t least_before = first.least, known = first.last;
  std::optional<std::int64_t> least_after;
  for (const Point& point : points_) {
    summary.least = std::min(summary.least, point.least);
    summary.most = std::max(summary.most, point.most);
    if (point.start_ns <= middle) {
      least_before = std::min(least_before, point.least);
      known = point.last;
    } else {
      least_after = std::min(least_after.value_or(known), point.least);
    }
  }
  const double seconds = static_cast<double>(end - begin) / 1e9;
  if (seconds < shortest_s) return summary;
  summary.growth = static_cast<double>(least_after.value_or(known) - least_before) / (seconds / 2);
  summary.cycles = static_cast<double>(last.cycles - cycles_before_) / seconds;
  return summary;
}

std::uint32_t HeapTracks::add_state(const HeapChanges::State& state) {
  states_.push_back({state, {}});
  return static_cast<std::uint32_t>(states_.size() - 1);
}

void HeapTracks::add(std::int64_t at_ns, const HeapChange& change) {
  HeapTrack& track = states_[change.state].track;
  const std::int64_t before = track.points().empty() ? 0 : track.points().back().last;
  track.add(at_ns, change.bytes, change.phase, change.collected);
  total_bytes_ += change.bytes - before;
  total_.add(at_ns, total_bytes_, change.phase, change.collected);
}

}  // namespace luaspy
