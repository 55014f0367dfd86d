#include "recording/slow_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/time_text.h"
#include "base/word_hash.h"

namespace luaspy {
namespace {

constexpr std::int64_t ms_per_s = 1000, ns_per_ms = 1'000'000;

// "14:02:07.123", local time.
std::string time_text(std::int64_t wall_ms) {
  return fmt::format("{}.{:03}", local_text(wall_ms / ms_per_s, "%H:%M:%S"), wall_ms % ms_per_s);
}

}  // namespace

void SlowRequests::begin(system::Clock::time_point start) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  begin_at(std::chrono::duration_cast<milliseconds>(now + (start - system::Clock::now())).count());
  sink_.begin(start);
}

std::uint64_t SlowRequests::key_of(int pid, const RequestIdentity& request) {
  if (request.id == 0) return 0;
  std::uint64_t key = request.id;
  mix(key, static_cast<std::uint64_t>(pid));
  return key;
}

std::uint64_t SlowRequests::key_of(ThreadId thread, const Sample& sample) const {
  return sample.loss == Loss::none ? key_of(tables_.threads[thread].pid, sample.request) : 0;
}

void SlowRequests::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  if (const std::uint64_t key = key_of(thread, sample); key != 0) meet(key, sample.request, sample.labels, tick.at_ns);
  hold({tick, thread, sample});
}

void SlowRequests::add_suspended(const SuspendedLook& look) {
  for (const SuspendedGroup& group : look.groups) {
    if (const std::uint64_t key = key_of(look.pid, group.request); key != 0)
      meet(key, group.request, group.labels, look.at_ns);
  }
  hold({.suspended = std::make_unique<SuspendedLook>(look)});
}

void SlowRequests::meet(std::uint64_t key, const RequestIdentity& identity, LabelsId labels, std::int64_t at_ns) {
  const std::int64_t now_ms = begin_ms_ + at_ns / ns_per_ms;
  const auto [found, is_new] = requests_.try_emplace(key);
  Request& request = found->second;
  if (is_new) {
    // A clock that was set meanwhile is no beginning.
    constexpr std::int64_t day = 86'400 * ms_per_s;
    const std::int64_t said = identity.begun_ms;
    request.begun_ms = said != 0 && said <= now_ms && said > now_ms - day ? said : now_ms;
    ++seen_;
  }
  const bool was_slow = request.age_ms >= slower_ms_;
  request.age_ms = std::max(request.age_ms, now_ms - request.begun_ms);
  if (!was_slow && request.age_ms >= slower_ms_) ++slow_;
  ++request.held;
  const std::string* const name = tables_.labels.find(labels, request_label);
  if (name != nullptr && !request.has_name && (request.name.empty() || !identity.is_part)) {
    request.name = *name;
    request.has_name = !identity.is_part;
  }
}

void SlowRequests::end(int pid, const Tick& tick) { hold({.tick = tick, .ended = pid}); }

void SlowRequests::hold(Held held) {
  held_size_ += held.size();
  held_.push_back(std::move(held));
  while (held_size_ > most_held) release();
}

// The one that waits longest.
void SlowRequests::release() {
  Held held = std::move(held_.front());
  held_.pop_front();
  held_size_ -= held.size();
  if (held.ended != 0) return sink_.end(held.ended, held.tick);
  if (held.suspended) return release(*held.suspended);
  Sample& sample = held.sample;
  if (sample.loss == Loss::none) {
    if (const std::optional<LabelsId> labels = decide(key_of(held.thread, sample), sample.labels)) {
      sample.labels = *labels;
    } else {
      sample.loss = Loss::left_out;
      sample.stack = empty_stack;
    }
  }
  sink_.add(held.thread, held.tick, sample);
}

void SlowRequests::release(SuspendedLook& look) {
  std::erase_if(look.groups, [&](SuspendedGroup& group) {
    const std::optional<LabelsId> labels = decide(key_of(look.pid, group.request), group.labels);
    if (labels) group.labels = *labels;
    return !labels;
  });
  sink_.add_suspended(look);
}

std::optional<LabelsId> SlowRequests::decide(std::uint64_t key, LabelsId labels) {
  const auto found = requests_.find(key);
  if (found == requests_.end()) return std::nullopt;
  Request& request = found->second;
  std::optional<LabelsId> decided;
  if (request.age_ms >= slower_ms_) decided = with_slow_label(labels, request);
  // Of a slow one, more may come, which is the same one.
  constexpr std::size_t most_slow = 1 << 14;
  if (--request.held == 0 && (request.value.empty() || requests_.size() > most_slow)) requests_.erase(found);
  return decided;
}

void SlowRequests::finish() {
  has_ended_ = true;
  while (!held_.empty()) release();
}

LabelsId SlowRequests::with_slow_label(LabelsId labels, Request& request) {
  if (request.value.empty())
    request.value = fmt::format("{}, {}{} ms, began at {}", request.name, has_ended_ ? "" : "over ", request.age_ms,
                                time_text(request.begun_ms));
  Labels all = tables_.labels[labels];
  all.push_back({std::string(slow_label), request.value});
  return tables_.labels.intern(all);
}

std::string SlowRequests::text() const {
  if (seen_ == 0) return "no request was seen: --slower knows those of nginx and OpenResty, and scripts of Redis";
  return fmt::format("{} of {} requests that were seen took {} ms or longer", slow_, seen_, slower_ms_);
}

}  // namespace luaspy
