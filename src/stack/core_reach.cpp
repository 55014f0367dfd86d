#include "stack/core_reach.h"

#include <algorithm>
#include <optional>
#include <set>

namespace luaspy {
namespace {

// In LuaJIT 2.1.0-beta3 as Debian has built it there are at most 4 KB between two functions that are reached.
constexpr Address far = 16 << 10;
constexpr std::size_t largest = 1 << 18;  // bytes of a function that is read

// The starts of the functions that this one calls or jumps to.
void add_targets(const ReachedCode& in, const Unwinder::Range& function, std::vector<Address>& targets) {
  if (function.end - function.start > largest) return;
  const std::vector<std::byte> bytes = in.read(function);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const auto rest = std::span<const std::byte>(bytes).subspan(at);
    std::optional<Address> target = in.code.direct_call_at(function.start + at, rest);
    if (!target) target = in.code.direct_jump_at(function.start + at, rest);
    if (target && (*target < function.start || *target >= function.end)) targets.push_back(*target);
  }
}

}  // namespace

std::vector<Unwinder::Range> extended(std::vector<Unwinder::Range> own, const ReachedCode& in) {
  const auto is_own = [&](Address address) {
    return std::ranges::any_of(
        own, [&](const Unwinder::Range& range) { return address >= range.start && address < range.end; });
  };
  const auto function_at = [&](Address start) -> const Unwinder::Range* {
    const auto found = std::ranges::lower_bound(in.functions, start, {}, &Unwinder::Range::start);
    return found != in.functions.end() && found->start == start ? &*found : nullptr;
  };
  std::vector<const Unwinder::Range*> open;
  for (const Unwinder::Range& function : in.functions) {
    if (is_own(function.start)) open.push_back(&function);
  }
  std::set<Address> reached;
  std::vector<Address> targets;
  while (!open.empty()) {
    targets.clear();
    add_targets(in, *open.back(), targets);
    open.pop_back();
    for (const Address target : targets) {
      const Unwinder::Range* const function = function_at(target);
      if (function == nullptr || is_own(target) || !in.may_be_own(target)) continue;
      if (reached.insert(target).second) open.push_back(function);
    }
  }
  for (Unwinder::Range& range : own) {
    for (auto before = reached.lower_bound(range.start); before != reached.begin();) {
      if (range.start - *--before > far) break;
      range.start = *before;
    }
    for (auto after = reached.lower_bound(range.end); after != reached.end() && *after - range.end <= far; ++after)
      range.end = std::max(range.end, function_at(*after)->end);
  }
  return own;
}

}  // namespace luaspy
