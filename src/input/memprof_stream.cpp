#include "input/memprof_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace luaspy {
namespace {

constexpr std::uint8_t end_mark = 0x80, kind_bits = 3, largest_header = 4 << 2 | 3;
constexpr int source_shift = 2;
namespace source {
enum Of : std::uint8_t { internal = 1, lua, c, trace };
}

bool read_event(std::uint8_t header, ByteReader& in, const LuajitSymbols& symbols, MemprofEvent& event) {
  using Kind = MemprofEvent::Kind;
  bool good = true;
  const auto number = [&] {
    const std::optional<std::uint64_t> next = good ? in.number() : std::nullopt;
    good = next.has_value();
    return next.value_or(0);
  };
  event = {};
  event.kind = static_cast<Kind>(header & kind_bits);
  const int from = header >> source_shift;
  if (from == source::c) event.place = symbols.c(number());
  if (from == source::trace) event.place = symbols.trace(number());
  if (from == source::lua) {
    const std::uint64_t prototype = number(), line = number();
    event.place = symbols.lua(prototype,
                              static_cast<int>(std::min<std::uint64_t>(line, std::numeric_limits<int>::max())));
  }
  if (event.kind != Kind::allocation) event.old_address = number(), event.old_size = number();
  if (event.kind != Kind::free) event.new_address = number(), event.new_size = number();
  return good;
}

}  // namespace

std::string each_memprof_event(ByteReader& in, LuajitSymbols& symbols,
                               const std::function<bool(const MemprofEvent&)>& see) {
  MemprofEvent event;
  for (;;) {
    const std::int64_t at = in.offset();
    const std::optional<std::uint8_t> header = in.byte();
    if (!header) return fmt::format("byte {}: the stream ends without its end mark", at);
    if ((*header & end_mark) != 0) return {};
    if (*header > largest_header || *header >> source_shift < source::internal)
      return fmt::format("byte {}: this is no event", at);
    if ((*header & kind_bits) == 0) {
      const int from = *header >> source_shift;
      if (from == source::internal || !symbols.read(static_cast<LuajitSymbols::Symbol>(from - source::lua), in))
        return fmt::format("byte {}: this is no whole symbol", at);
      continue;
    }
    if (!read_event(*header, in, symbols, event)) return fmt::format("byte {}: this is no whole event", at);
    if (!see(event)) return fmt::format("byte {}: it has more than luaspy reads", at);
  }
}

std::optional<MemprofBlocks::Block> MemprofBlocks::apply(const MemprofEvent& event) {
  std::optional<Block> before;
  if (event.kind != MemprofEvent::Kind::allocation) {
    if (const auto known = blocks_.find(event.old_address); known != blocks_.end()) {
      before = known->second;
      blocks_.erase(known);
    }
  }
  if (event.kind != MemprofEvent::Kind::free) blocks_[event.new_address] = {event.new_size, event.place};
  return before;
}

}  // namespace luaspy
