// The collector of PUC (lgc.h, lgc.c), and its list of objects.

#include <array>

#include "luastate/puc/puc_lua.h"

namespace luaspy {
namespace {

// lgc.h: the phases by number.
constexpr std::string_view phases51[] = {"GCSpause", "GCSpropagate", "GCSsweepstring", "GCSsweep", "GCSfinalize"};
constexpr std::string_view phases52[] = {"GCSpropagate",  "GCSatomic", "GCSsweepstring",
                                         "GCSsweepudata", "GCSsweep",  "GCSpause"};
// The last one is lgc.c's own: in the atomic step itself.
constexpr std::string_view phases53[] = {"GCSpropagate", "GCSatomic",  "GCSswpallgc", "GCSswpfinobj",   "GCSswptobefnz",
                                         "GCSswpend",    "GCScallfin", "GCSpause",    "GCSinsideatomic"};
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
  std::array<std::byte, largest_counter> words{};
  const std::span<std::byte> counter = std::span(words).first(heap_counter(G).size());
  const bool has_size = memory.read(heap_counter(G).start, counter);
  const auto kind = layout_.G_gckind != no_field ? memory.get<std::uint8_t>(G + layout_.G_gckind) : std::uint8_t{0};
  state.bytes = heap_bytes(counter);
  state.mode = mode_of(layout_, kind.value_or(0));
  if (phase && white) state.set(phases_of(layout_.bytecode), *phase, *white, white_bits(layout_.bytecode));
  state.known &= has_size && kind;
  if (layout_.estimate_from_totalbytes != no_field)
    state.estimate = memory.get<std::int64_t>(G + layout_.G_totalbytes + layout_.estimate_from_totalbytes);
  return state;
}

// lstate.h: frealloc follows the string table in 5.1, and is the first field from 5.2 on. `ud` follows it.
Address PucLua::allocation_function_slot(Address G) const {
  constexpr Offset size_of_stringtable = 16;
  return G + (layout_.bytecode == Bytecode::lua51 ? size_of_stringtable : Offset{0});
}

Address PucLua::allocation_function(const Memory& memory, Address G) const {
  return memory.get<Address>(allocation_function_slot(G)).value_or(0);
}

// lstate.h: the seed follows the registry from 5.2 on, and nilvalue is between them from 5.4 on.
std::array<AddressRange, 3> PucLua::identity_fields(Address G) const {
  const Address allocation = allocation_function_slot(G), registry = registry_slot(G);
  const bool has_nilvalue = layout_.bytecode == Bytecode::lua54 || layout_.bytecode == Bytecode::lua55;
  const Address seed = registry + (has_nilvalue ? 2u : 1u) * slot_size();
  const Address seed_size = layout_.bytecode == Bytecode::lua51 ? 0 : sizeof(std::uint32_t);
  return {AddressRange{allocation, allocation + 2 * sizeof(Address)},
          AddressRange{registry, registry + sizeof(Address)}, AddressRange{seed, seed + seed_size}};
}

// lstate.h: GCdebt, if there is one, follows totalbytes.
AddressRange PucLua::heap_counter(Address G) const {
  const Address total = G + layout_.G_totalbytes;
  return {total, total + (layout_.G_GCdebt != no_field ? 16 : 8)};
}

std::int64_t PucLua::heap_bytes(std::span<const std::byte> counter) const {
  const auto total = load<std::uint64_t>(counter, 0), debt = counter.size() > 8 ? load<std::uint64_t>(counter, 8) : 0;
  // lstate.h, gettotalbytes: in 5.5, GCdebt has the opposite sign.
  return static_cast<std::int64_t>(layout_.bytecode == Bytecode::lua55 ? total - debt : total + debt);
}

// lmem.c, lmem.h: luaM_newobject has passed the type since 5.2, without its variant; other blocks
// pass 0. lua.h, lobject.h: LUA_TSTRING and so on.
std::optional<ObjectType> PucLua::type_of_new(std::uint64_t osize) const {
  const bool upvalue_first = layout_.bytecode == Bytecode::lua54 || layout_.bytecode == Bytecode::lua55;
  if (layout_.bytecode == Bytecode::lua51) return std::nullopt;
  switch (osize) {
    case 4:
      return ObjectType::string;
    case 5:
      return ObjectType::table;
    case 6:
      return ObjectType::lua_function;
    case 7:
      return ObjectType::userdata;
    case 8:
      return ObjectType::thread;
    case 9:
      return upvalue_first ? ObjectType::upvalue : ObjectType::prototype;
    case 10:
      return upvalue_first ? ObjectType::prototype : ObjectType::upvalue;
    default:
      return std::nullopt;
  }
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
