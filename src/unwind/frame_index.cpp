#include "unwind/frame_index.h"

#include <algorithm>
#include <limits>

#include "unwind/call_frame_entry.h"

namespace luaspy {

// Only the encoding that every linker writes is accepted: sdata4 relative to the header.
FrameIndex FrameIndex::of_table(std::span<const std::byte> header, Address at) {
  EncodedBytes bytes(header, at);
  const std::uint32_t form = bytes.read<std::uint32_t>();
  (void)bytes.read<std::uint32_t>();  // where .eh_frame begins
  const std::uint64_t count = bytes.read<std::uint32_t>();
  FrameIndex index;
  if (form != 0x3b031b01 && form != 0x3b033b01) return index;
  if (!bytes.good() || count * pair_size > bytes.rest().size()) return index;
  index.base_ = at;
  index.table_ = bytes.rest().first(count * pair_size);
  return index;
}

// LSB 5.0, 10.6.1: entries one after the other, each with its length before it. A length of 0 ends what one
// object file had, and ld leaves some of them in the middle.
FrameIndex FrameIndex::of_entries(const LoadedBytes& loaded, Address at, std::uint64_t size) {
  constexpr std::size_t most = 1 << 20;
  FrameIndex index;
  index.base_ = at;
  const auto distance = [&](Address to) -> std::optional<std::int32_t> {
    const auto value = static_cast<std::int64_t>(to - at);
    const bool fits = value >= std::numeric_limits<std::int32_t>::min() &&
                      value <= std::numeric_limits<std::int32_t>::max();
    return fits ? std::optional(static_cast<std::int32_t>(value)) : std::nullopt;
  };
  const std::span<const std::byte> all = loaded.from(at);
  EncodedBytes bytes(all.first(std::min<std::uint64_t>(all.size(), size)), at);
  while (!bytes.empty() && index.made_.size() < most) {
    const Address place = bytes.at();
    const std::uint32_t length = bytes.read<std::uint32_t>();
    EncodedBytes entry(bytes.skip(length));
    if (!bytes.good()) break;
    if (length == 0 || entry.read<std::uint32_t>() == 0) continue;  // a terminator, or a CIE
    const std::optional<CallFrameEntry> function = read_entry(loaded, place);
    if (!function || function->start == 0 || function->end <= function->start)
      continue;  // 0: a function that ld has dropped
    const std::optional<std::int32_t> start = distance(function->start), information = distance(place);
    if (start && information) index.made_.push_back({*start, *information});
  }
  std::ranges::sort(index.made_, {}, &Pair::start);
  return index;
}

FrameIndex::Function FrameIndex::operator[](std::size_t i) const {
  const auto pair = load<Pair>(pairs(), i * pair_size);
  const auto address = [&](std::int32_t distance) { return base_ + static_cast<Address>(std::int64_t{distance}); };
  return {address(pair.start), address(pair.entry)};
}

std::optional<FrameIndex::Function> FrameIndex::find(Address pc) const {
  std::size_t low = 0, high = size();  // the first function that starts after pc is in [low, high]
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if ((*this)[middle].start <= pc) low = middle + 1;
    else high = middle;
  }
  return low != 0 ? std::optional((*this)[low - 1]) : std::nullopt;
}

}  // namespace luaspy
