#include "allocations/call_kinds.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace luaspy {

// Objects have few sizes, in steps of a pointer; what is larger has any size.
int CallKinds::size_class(std::uint64_t bytes) {
  constexpr std::uint64_t exact = 128, step = 8;
  if (bytes <= exact) return static_cast<int>((bytes + step - 1) / step);
  return static_cast<int>(exact / step) + static_cast<int>(std::bit_width((bytes - 1) / exact));
}

// Lua says what a new object is where the old size would be (lua.h, lua_Alloc).
CallKinds::Kind CallKinds::kind_of(const AllocationCall& call) {
  constexpr std::uint64_t most_types = 64;
  return {call.is_new(), call.is_new() ? std::min(call.old_size, most_types) : 0, size_class(call.growth())};
}

void CallKinds::add(std::span<const CallTrap::Call> calls, double stand_for) {
  // Where bursts begin with a round of the program, its first calls are in each of them, but the last ones are not.
  const double last_part = calls_between_pauses() > 0 ? 0.25 : 1;
  const std::int64_t growing = sums_of(calls).growing;
  const std::int64_t counted = std::max<std::int64_t>(std::llround(last_part * static_cast<double>(growing)), 1);
  const double each = stand_for / static_cast<double>(counted);
  std::int64_t place = 0;
  for (const CallTrap::Call& trapped : calls) {
    const AllocationCall call = allocation_call(trapped.arguments);
    const std::uint64_t growth = call.growth();
    if (growth == 0) continue;
    Amounts& amounts = kinds_[kind_of(call)];
    ++amounts.trapped, ++all_.trapped;
    amounts.first += place == 0, all_.first += place == 0;
    if (++place <= growing - counted) continue;
    amounts.calls += each;
    amounts.bytes += each * static_cast<double>(growth);
    amounts.largest = std::max(amounts.largest, growth);
    all_.calls += each;
    all_.bytes += each * static_cast<double>(growth);
  }
}

// By what was trapped, not by how many samples there were: those are more or less by chance. A kind with few calls and
// many bytes is known better by itself as soon as it has a sample, and until then it is missed (unsampled()).
bool CallKinds::is_rare(const Amounts& amounts) const {
  constexpr double enough_by_calls = 10, enough_by_bytes = 3;  // samples
  const auto samples = static_cast<double>(all_.samples);
  return amounts.calls * samples < enough_by_calls * all_.calls &&
         amounts.bytes * samples < enough_by_bytes * all_.bytes;
}

CallKinds::Amounts CallKinds::all_rare() const {
  Amounts sums;
  for (const auto& [kind, amounts] : kinds_) {
    if (!is_rare(amounts)) continue;
    sums.calls += amounts.calls, sums.bytes += amounts.bytes;
    sums.given += amounts.given, sums.samples += amounts.samples;
  }
  return sums;
}

// The mean of its kind. Until the next sample there will be as many calls again as there were for each so far, on
// average: the first sample stands for them in advance, since nothing stands for what comes after the last one. What
// the samples of that kind so far stand for too much or too little is made up for slowly: at once, weights would vary
// so much that half of the samples were wasted.
double CallKinds::sample(const AllocationCall& call) {
  Amounts& own = kinds_[kind_of(call)];
  ++own.samples, ++all_.samples;
  const bool rare = is_rare(own);
  const Amounts amounts = rare ? all_rare() : own;
  const double at_once = amounts.samples == 1 ? 1 : 0.2, samples = static_cast<double>(amounts.samples);
  const double mean = amounts.calls / samples;
  double weight = std::max(mean + at_once * (amounts.calls - amounts.given), at_once * mean);
  // A large block among many small ones does not stand for more bytes than all of them have.
  if (rare) weight = std::min(weight, amounts.bytes * (1 + 1 / samples) / static_cast<double>(call.growth()));
  own.given += weight;
  return weight;
}

// The loop has one call of the kind that comes first after the pause. That kind is counted without those first calls,
// as every burst has one.
double CallKinds::calls_between_pauses() const {
  constexpr double least_more = 0.1, errors = 4;  // of the bursts; standard errors
  const auto bursts = static_cast<double>(all_.first), all_later = static_cast<double>(all_.trapped - all_.first);
  double calls = 0;
  for (const auto& [kind, amounts] : kinds_) {
    const auto later = static_cast<double>(amounts.trapped - amounts.first);
    const double expected = bursts * later / std::max(all_later, 1.0);
    const double more = static_cast<double>(amounts.first) - expected;
    if (more > least_more * bursts + errors * std::sqrt(expected + 1))
      calls = std::max(calls, all_later / std::max(later, 1.0));
  }
  return calls;
}

CallKinds::Unsampled CallKinds::unsampled() const {
  Unsampled unsampled;
  double bytes = 0;
  for (const auto& [kind, amounts] : kinds_) {
    if (amounts.samples != 0) continue;
    bytes += amounts.bytes;
    unsampled.largest = std::max(unsampled.largest, amounts.largest);
  }
  if (all_.bytes > 0) unsampled.percent_of_bytes = 100 * bytes / all_.bytes;
  return unsampled;
}

}  // namespace luaspy
