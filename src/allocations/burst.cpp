#include "allocations/burst.h"

#include <algorithm>
#include <vector>

#include "arch/machine.h"

namespace luaspy {

AllocationCall allocation_call(const std::array<std::uint64_t, 4>& arguments) {
  return {arguments[1], arguments[2], arguments[3]};
}

ReturnPlace return_place(const Registers& at_entry, const Memory& memory) {
  const Machine& machine = own_machine();
  return {machine.return_address(at_entry, at_entry.sp(), {}, memory).value_or(0),
          at_entry.sp() + machine.bytes_on_return()};
}

BurstSums sums_of(std::span<const CallTrap::Call> calls) {
  BurstSums sums;
  for (const CallTrap::Call& call : calls) {
    const std::uint64_t growth = allocation_call(call.arguments).growth();
    sums.growing += growth != 0;
    sums.bytes += std::min(growth, BurstSums::most_bytes);
  }
  return sums;
}

// Calls that free are the collector's, mostly, and in no step with the program.
std::size_t period_of(std::span<const CallTrap::Call> calls) {
  constexpr std::size_t rounds = 3;  // that show it
  std::vector<std::uint64_t> sizes;
  for (const CallTrap::Call& call : calls) {
    const std::uint64_t growth = allocation_call(call.arguments).growth();
    if (growth != 0) sizes.push_back(growth);
  }
  for (std::size_t period = 1; period * rounds <= sizes.size(); ++period) {
    std::size_t equal = 0;
    for (std::size_t i = period; i < sizes.size(); ++i) equal += sizes[i] == sizes[i - period];
    if (equal * 10 >= (sizes.size() - period) * 9) return period;
  }
  return 0;
}

}  // namespace luaspy
