#include "heapdump/heapsnapshot_ids.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr unsigned granule_log2 = 3, window_log2 = 34;  // objects begin at multiples of 8
constexpr unsigned numbers_log2 = window_log2 - granule_log2;
constexpr std::uint32_t numbers = std::uint32_t{1} << numbers_log2;

std::uint32_t number_in_window(Address address) {
  return static_cast<std::uint32_t>(address >> granule_log2) & (numbers - 1);
}

}  // namespace

HeapsnapshotIds::HeapsnapshotIds(std::span<const Address> used) {
  for (const Address address : used) use(address);
  place();
}

HeapsnapshotIds::HeapsnapshotIds(std::span<const HeapAnalysis* const> analyses) {
  for (const HeapAnalysis* const analysis : analyses) {
    use(analysis->global_state());
    for (Node node = 1; node < analysis->graph().nodes(); ++node) {
      if (analysis->is_live(node)) use(analysis->graph().object(node).address);
    }
  }
  place();
}

void HeapsnapshotIds::use(Address address) {
  const Address window = address >> window_log2;
  const std::uint32_t number = number_in_window(address);
  auto found = std::ranges::lower_bound(windows_, window, {}, &Window::number);
  if (found == windows_.end() || found->number != window) found = windows_.insert(found, {window, number, number});
  found->first = std::min(found->first, number);
  found->last = std::max(found->last, number);
}

void HeapsnapshotIds::place() {
  constexpr unsigned steps_log2 = 6;
  constexpr std::uint32_t step = numbers >> steps_log2;
  // The numbers of two windows, each of them a piece of a circle.
  const auto meet = [](const Window& one, const Window& other) {
    const auto distance = [](std::uint32_t from, std::uint32_t to) { return (to - from) & (numbers - 1); };
    const std::uint32_t first = one.first + one.shift, other_first = other.first + other.shift;
    return distance(first, other_first) <= one.last - one.first ||
           distance(other_first, first) <= other.last - other.first;
  };
  const Window root_number;
  for (auto window = windows_.begin(); window != windows_.end(); ++window) {
    const auto is_free = [&] {
      return !meet(*window, root_number) &&
             std::none_of(windows_.begin(), window, [&](const Window& other) { return meet(*window, other); });
    };
    for (std::uint32_t tries = 1; !is_free() && tries < 1U << steps_log2; ++tries) window->shift += step;
  }
}

std::uint32_t HeapsnapshotIds::of(Address address) const {
  const auto window = std::ranges::lower_bound(windows_, address >> window_log2, {}, &Window::number);
  const std::uint32_t shift = window == windows_.end() ? 0 : window->shift;
  return 2 * ((number_in_window(address) + shift) & (numbers - 1)) + root;
}

}  // namespace luaspy
