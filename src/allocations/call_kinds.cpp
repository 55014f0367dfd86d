#include "allocations/call_kinds.h"

#include <algorithm>
#include <bit>

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

void CallKinds::add(std::span<const CallTrap::Call> calls, double each) {
  for (const CallTrap::Call& trapped : calls) {
    const AllocationCall call = allocation_call(trapped.arguments);
    const std::uint64_t growth = call.growth();
    if (growth == 0) continue;
    Amounts& amounts = kinds_[kind_of(call)];
    amounts.calls += each;
    amounts.bytes += each * static_cast<double>(growth);
    amounts.largest = std::max(amounts.largest, growth);
  }
}

// The mean of its kind. What the samples of that kind so far stand for too much or too little is made
// up for slowly: at once, weights would vary so much that half of the samples were wasted.
double CallKinds::sample(const AllocationCall& call) {
  constexpr double at_once = 0.2;
  Amounts& amounts = kinds_[kind_of(call)];
  const double mean = amounts.calls / static_cast<double>(++amounts.samples);
  const double weight = std::max(mean + at_once * (amounts.calls - amounts.given - mean), at_once * mean);
  amounts.given += weight;
  return weight;
}

CallKinds::Unsampled CallKinds::unsampled() const {
  Unsampled unsampled;
  double all = 0, bytes = 0;
  for (const auto& [kind, amounts] : kinds_) {
    all += amounts.bytes;
    if (amounts.samples != 0) continue;
    bytes += amounts.bytes;
    unsampled.largest = std::max(unsampled.largest, amounts.largest);
  }
  if (all > 0) unsampled.percent_of_bytes = 100 * bytes / all;
  return unsampled;
}

}  // namespace luaspy
