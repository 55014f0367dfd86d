#pragma once
// What programs/allocations.c counts itself, by the sites of workloads/allocations.lua, and how shares
// that were sampled compare with it. Without assertions: for tests and for the campaign.

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

namespace luaspy {

constexpr std::size_t allocation_sites = 8;  // site 0: all other places
inline constexpr std::array<std::string_view, 5> allocation_workloads = {"bursts", "loops", "strings", "callbacks",
                                                                         "coroutines"};

// As it lies in the program's memory.
struct AllocationTruth {
  using BySite = std::array<std::int64_t, allocation_sites>;
  std::int64_t site = 0;
  BySite calls{}, bytes{};

  AllocationTruth operator-(const AllocationTruth& before) const {
    AllocationTruth between = *this;
    for (std::size_t i = 0; i < allocation_sites; ++i)
      between.calls[i] -= before.calls[i], between.bytes[i] -= before.bytes[i];
    return between;
  }
};

// The site whose function this is ("loops_site2 (…)"); `outer` if it is no site's.
inline std::size_t allocation_site_of(std::string_view function, std::size_t outer) {
  constexpr std::string_view mark = "_site";
  const std::size_t at = function.find(mark);
  if (at == std::string_view::npos || at + mark.size() >= function.size()) return outer;
  const auto site = static_cast<std::size_t>(function[at + mark.size()] - '0');
  return site < allocation_sites ? site : outer;
}

// Of all sites, %.
template <typename Amounts>
double share_of_site(const Amounts& amounts, std::size_t site) {
  const auto all = static_cast<double>(std::accumulate(amounts.begin(), amounts.end(), typename Amounts::value_type{}));
  return all != 0 ? 100 * static_cast<double>(amounts[site]) / all : 0;
}

}  // namespace luaspy
