// The collector of PUC (lgc.h, lgc.c), and its list of objects.

#include <array>

#include "luastate/puc/puc_lua.h"

namespace luaspy {
namespace {

// lgc.h: the phases by number.
constexpr std::string_view phases51[] = {"GCSpause", "GCSpropagate", "GCSsweepstring", "GCSsweep", "GCSfinalize"};
constexpr std::string_view phases52[] = {"GCSpropagate",  "GCSatomic", "GCSsweepstring",
                                         "GCSsweepudata", "GCSsweep",  "GCSpause"};
constexpr std::string_view phases53[] = {"GCSpropagate",  "GCSatomic", "GCSswpallgc", "GCSswpfinobj",
                                         "GCSswptobefnz", "GCSswpend", "GCScallfin",  "GCSpause"};
constexpr std::string_view phases54[] = {"GCSpropagate",  "GCSenteratomic", "GCSatomic",  "GCSswpallgc", "GCSswpfinobj",
                                         "GCSswptobefnz", "GCSswpend",      "GCScallfin", "GCSpause"};

std::span<const std::string_view> phases_of(Bytecode bytecode) {
  switch (bytecode) {
    case Bytecode::lua51:
      return phases51;
    case Bytecode::lua52:
      return phases52;
    case Bytecode::lua53:
      return phases53;
    default:
      return phases54;
  }
}

// lstate.h, KGC_…
std::string_view mode_of(const Layout& layout, unsigned kind) {
  constexpr std::string_view modes52[] = {"incremental", "emergency", "generational"};
  // The last one exists from 5.5 on.
  constexpr std::string_view modes54[] = {"incremental", "generational", "generational, major"};
  if (layout.G_gckind == no_field || kind >= std::size(modes54)) return "incremental";
  return layout.bytecode == Bytecode::lua52 ? modes52[kind] : modes54[kind];
}

// WHITEBITS: bits 0 and 1 of `marked`; 3 and 4 from 5.4 on.
std::uint8_t white_bits(Bytecode bytecode) {
  return bytecode == Bytecode::lua54 || bytecode == Bytecode::lua55 ? 0x18 : 0x03;
}

}  // namespace

CollectorState PucLua::collector(const Memory& memory, Address G) const {
  CollectorState state;
  const auto phase = memory.get<std::uint8_t>(G + layout_.G_gcstate),
             white = memory.get<std::uint8_t>(G + layout_.G_currentwhite);
  std::uint64_t total = memory.get<std::uint64_t>(G + layout_.G_totalbytes).value_or(0);
  if (layout_.G_GCdebt != no_field) {
    const std::uint64_t debt = memory.get<std::uint64_t>(G + layout_.G_GCdebt).value_or(0);
    // lstate.h, gettotalbytes: in 5.5, GCdebt has the opposite sign.
    total += layout_.bytecode == Bytecode::lua55 ? -debt : debt;
  }
  state.bytes = static_cast<std::int64_t>(total);
  state.mode = mode_of(layout_,
                       layout_.G_gckind != no_field ? memory.get<std::uint8_t>(G + layout_.G_gckind).value_or(0) : 0);
  if (phase && white) state.set(phases_of(layout_.bytecode), *phase, *white, white_bits(layout_.bytecode));
  return state;
}

Address PucLua::first_object(const Memory& memory, Address G) const {
  return memory.get<Address>(G + layout_.G_allgc).value_or(0);
}

// lobject.h, CommonHeader: next, tt, marked.
bool PucLua::read_head(const Memory& memory, Address object, ObjectHead& head) const {
  std::array<std::byte, 16> bytes;
  if (!plausible_pointer(object) || !memory.read(object, bytes)) return false;
  head.next = load<Address>(bytes, 0);
  head.type = load<std::uint8_t>(bytes, 8);
  head.marked = load<std::uint8_t>(bytes, 9);
  head.is_thread = head.type == layout_.tag_thread;
  // The types from LUA_TSTRING to the last collectable one (5.1: LUA_TUPVAL, 10). Variants are in
  // the bits above; the other bits of the byte are clear.
  constexpr unsigned variant_bits = 0x30, first = 4, last = 10;
  const unsigned plain = head.type & ~variant_bits;
  return plain >= first && plain <= last && (head.next == 0 || plausible_pointer(head.next));
}

}  // namespace luaspy
