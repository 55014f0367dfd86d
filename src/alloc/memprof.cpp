#include "alloc/memprof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>
#include <vector>

#include "allocations/allocation_loop.h"
#include "base/text.h"
#include "output/format.h"
#include "profile/function_table.h"

namespace luaspy {
namespace {

using Lines = std::map<std::string, Memprof::Line>;

std::int64_t rounded(double amount) { return static_cast<std::int64_t>(std::llround(amount)); }

// Most events first.
std::string section(std::string_view heading, const Lines& lines, Memprof::Amount Memprof::Line::*which) {
  std::vector<std::pair<std::string_view, Memprof::Amount>> rows;
  for (const auto& [location, line] : lines) {
    if ((line.*which).events > 0) rows.emplace_back(location, line.*which);
  }
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) { return a.second.events > b.second.events; });
  std::string text = fmt::format("{}\n", heading);
  for (const auto& [location, of] : rows)
    text += fmt::format("{}: {} events\t+{} bytes\t-{} bytes\n", location, rounded(of.events), rounded(of.allocated),
                        rounded(of.freed));
  return text + '\n';
}

// Most bytes first.
std::string heap_summary(const Lines& lines) {
  std::vector<std::pair<std::string_view, Memprof::Line>> rows;
  for (const auto& [location, line] : lines) {
    if (line.alive.bytes > 0) rows.emplace_back(location, line);
  }
  std::ranges::stable_sort(rows,
                           [](const auto& a, const auto& b) { return a.second.alive.bytes > b.second.alive.bytes; });
  std::string text = "HEAP SUMMARY:\n";
  for (const auto& [location, line] : rows) {
    text += fmt::format("{} holds {} bytes: {} allocs, {} frees\n", location, rounded(line.alive.bytes),
                        rounded(line.alive.events + line.alive.gone), rounded(line.alive.gone));
  }
  return text + '\n';
}

}  // namespace

constexpr Format memprof_format = {
    "memprof", ".memprof", "", "any script that reads what Tarantool's memprof prints: FILE", Shows::sums, nullptr};

std::string Memprof::location(const Stack& stack) {
  constexpr std::size_t longest = 1 << 12;
  const auto innermost = std::ranges::find(stack.rbegin(), stack.rend(), Frame::Kind::lua, &Frame::kind);
  if (innermost == stack.rend()) return "INTERNAL";
  // A file's name is marked; that of a chunk that was loaded from a string is a piece of the string.
  const bool is_file = !innermost->file.starts_with("[string");
  return fmt::format("{}{}:{}", is_file ? "@" : "", printable(innermost->file, longest), line_of(*innermost));
}

void Memprof::add(const std::string& location, const AllocationSample& allocation) {
  Line& line = lines_[location];
  Amount& amount = allocation.call.is_new() ? line.allocations : line.reallocations;
  amount.events += allocation.calls;
  amount.allocated += allocation.calls * static_cast<double>(allocation.call.new_size);
  if (!allocation.call.is_new()) amount.freed += allocation.calls * static_cast<double>(allocation.call.old_size);
}

void Memprof::add_alive(const std::string& location, const Alive& alive) {
  knows_alive_ = true;
  lines_[location].alive.events += alive.events;
  lines_[location].alive.bytes += alive.bytes;
  lines_[location].alive.gone += alive.gone;
}

std::string Memprof::text() const {
  std::string text = section("ALLOCATIONS", lines_, &Line::allocations) +
                     section("REALLOCATIONS", lines_, &Line::reallocations) + "DEALLOCATIONS\n\n";
  if (knows_alive_) text += heap_summary(lines_);
  return text;
}

}  // namespace luaspy
