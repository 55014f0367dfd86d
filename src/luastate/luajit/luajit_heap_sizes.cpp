// How much of gc.total each object is, and what else is in it.

#include <algorithm>
#include <array>
#include <bit>

#include "luastate/luajit/luajit_heap.h"

namespace luaspy {
namespace {

constexpr std::uint64_t value_size = 8, node_size = 24, ir_size = 8, snap_entry_size = 4;
constexpr std::uint64_t new_snapshot_size = 12, old_snapshot_size = 8;
constexpr std::uint32_t not_known = ~std::uint32_t{0};

struct TraceParts {
  std::uint64_t instructions = 0, snapshots = 0, entries = 0;  // bytes
  std::uint64_t snapshot_size = 0;                             // 0: not known
};

// lj_trace.c, lj_trace_alloc: the three are stored one after the other. nsnap and nsnapmap were at
// other places in 2017 (layouts.h).
TraceParts trace_parts(const LuajitLayout& layout, std::span<const std::byte> trace) {
  constexpr std::uint32_t most_instructions = 1 << 17;
  TraceParts parts;
  const auto nins = load<std::uint32_t>(trace, layout.T_nins), nk = load<std::uint32_t>(trace, layout.T_nk);
  if (nins >= nk && nins - nk < most_instructions) parts.instructions = (nins - nk) * ir_size;
  const Address snap = load<Address>(trace, layout.T_snap), snapmap = load<Address>(trace, layout.T_snapmap);
  const std::uint64_t all = snapmap - snap;
  if (load<std::uint16_t>(trace, layout.T_gct + 1u) * new_snapshot_size == all) {
    parts.snapshots = all;
    parts.entries = load<std::uint32_t>(trace, layout.T_nsnapmap) * snap_entry_size;
    if (all != 0) parts.snapshot_size = new_snapshot_size;
  } else if (load<std::uint16_t>(trace, layout.T_nsnapmap) * old_snapshot_size == all) {
    parts.snapshots = all;
    parts.entries = load<std::uint16_t>(trace, layout.T_nsnapmap + 2u) * snap_entry_size;
    parts.snapshot_size = old_snapshot_size;
  }
  return parts;
}

}  // namespace

std::uint64_t LuajitHeap::size_of(Address object, ObjectType type) const {
  const std::uint64_t upvalues = field<std::uint8_t>(object, layout_.fn_nupvalues);
  switch (type) {
    case ObjectType::table:
      return table_size(object);
    case ObjectType::lua_function:
      return layout_.fn_uvptr + layout_.ref_size * upvalues;
    case ObjectType::c_function:
      return layout_.fn_f + sizeof(Address) + value_size * upvalues;
    case ObjectType::userdata:
      return userdata_size(object);
    case ObjectType::thread:
      return thread_size(object);
    case ObjectType::prototype:
      return field<std::uint32_t>(object, layout_.pt_sizept);
    case ObjectType::upvalue:
      return layout_.uv_size;
    case ObjectType::cdata:
      return cdata_size(object);
    case ObjectType::trace:
      return trace_size(object);
    case ObjectType::string:
      break;  // visit_strings() has read its length
  }
  return 0;
}

// lj_str.h, lj_str_size; lj_obj.h of older releases, sizestring.
std::uint64_t LuajitHeap::string_size(std::uint32_t length) const {
  const std::uint64_t after = fields_.aligned_strings ? (std::uint64_t{length} + 4) & ~std::uint64_t{3}
                                                      : std::uint64_t{length} + 1;
  return layout_.str_data + after;
}

// lj_tab.c, lj_tab_free. colo: how many slots were allocated with the table; with the sign bit, the
// array has moved out of them.
std::uint64_t LuajitHeap::own_table_size(Address table) const {
  return layout_.tab_size + value_size * (field<std::uint8_t>(table, layout_.tab_colo) & 0x7fU);
}

std::uint64_t LuajitHeap::table_size(Address table) const {
  std::array<std::byte, 64> bytes;
  const auto fields = std::span(bytes).first(layout_.tab_size);
  if (!memory_.read(table, fields)) return layout_.tab_size;
  const auto colo = load<std::int8_t>(fields, layout_.tab_colo);
  const std::uint64_t mask = load<std::uint32_t>(fields, layout_.tab_hmask);
  std::uint64_t size = layout_.tab_size + value_size * (static_cast<std::uint8_t>(colo) & 0x7fU);
  if (mask > 0) size += node_size * (mask + 1);
  if (colo <= 0) size += value_size * load<std::uint32_t>(fields, layout_.tab_asize);
  return size;
}

// lj_buf.h, SBufExt: a string.buffer has its bytes apart, unless they belong to something else.
std::uint64_t LuajitHeap::userdata_size(Address userdata) const {
  std::uint64_t size = std::uint64_t{layout_.udata_size} + field<std::uint32_t>(userdata, layout_.udata_len);
  if (field<std::uint8_t>(userdata, layout_.udata_udtype) != buffer_fields::udtype) return size;
  const Address buffer = userdata + layout_.udata_size;
  if ((ref(buffer, buffer_fields::L) & buffer_fields::not_its_own) != 0) return size;
  const auto begin = field<Address>(buffer, buffer_fields::begin), end = field<Address>(buffer, buffer_fields::end);
  return plausible_pointer(begin) && end > begin && end < address_limit ? size + (end - begin) : size;
}

// lj_cdata.c, lj_cdata_free. A cdata with the flag is part of a bigger block: GCcdataVar is right
// before it, with the offset in the block, all that is not data, and the length of the data.
std::uint64_t LuajitHeap::cdata_size(Address cdata) const {
  constexpr std::uint8_t variable = 0x80;
  if ((field<std::uint8_t>(cdata, layout_.L_gct - 1u) & variable) != 0)
    return std::uint64_t{field<std::uint16_t>(cdata, -std::size_t{6})} + field<std::uint32_t>(cdata, -std::size_t{4});
  return layout_.cdata_size + type_size(field<std::uint16_t>(cdata, layout_.cdata_ctypeid));
}

// lj_ctype.h: attributes lead to their type; types from CT_NUM to CT_ENUM have a size.
std::uint64_t LuajitHeap::type_size(std::uint32_t id) const {
  constexpr std::uint32_t type_shift = 28, enumeration = 5, attribute = 8, child = 0xffff;
  constexpr int most_attributes = 64;
  if (fields_.ctype_state == 0) return 0;
  if (id < type_sizes_.size() && type_sizes_[id] != not_known) return type_sizes_[id];
  const auto types = field<Address>(fields_.ctype_state, cts_fields::tab);
  std::uint32_t size = 0;
  std::uint32_t now = id;
  for (int i = 0; i < most_attributes; ++i) {
    std::array<std::uint32_t, 2> type{};
    if (!memory_.read(types + now * ctype_size(layout_), std::as_writable_bytes(std::span(type)))) return 0;
    const std::uint32_t kind = type[0] >> type_shift;
    size = kind <= enumeration ? type[1] : std::uint32_t{sizeof(Address)};
    if (kind != attribute) break;
    now = type[0] & child;
  }
  if (id >= type_sizes_.size()) type_sizes_.resize(std::size_t{id} + 1, not_known);
  return type_sizes_[id] = size;
}

// lj_state.c, lj_state_free. The main thread is part of the GG_State.
std::uint64_t LuajitHeap::thread_size(Address L) const {
  const std::uint64_t stack = value_size * field<std::uint32_t>(L, layout_.L_stacksize);
  return L == luajit_.main_thread(memory_, G_) ? stack : layout_.main_L_below + stack;
}

std::uint64_t LuajitHeap::trace_size(Address trace) const {
  std::array<std::byte, 128> bytes;
  const auto fields = std::span(bytes).first(layout_.T_size);
  if (!memory_.read(trace, fields)) return layout_.T_size;
  const TraceParts parts = trace_parts(layout_, fields);
  return layout_.T_size + parts.instructions + parts.snapshots + parts.entries;
}

// lj_jit.h, SnapShot. Any trace shows it; after all were flushed, the last recording. In 2017 nsnap
// and nsnapmap were neighbours of 16 bits where later releases have nsnapmap.
std::uint64_t LuajitHeap::snapshot_size() const {
  constexpr std::uint32_t most = 1 << 16;
  const std::uint32_t traces = std::min(trace_table().size, most);
  for (std::uint32_t number = 1; number < traces; ++number) {
    std::array<std::byte, 128> bytes;
    const auto fields = std::span(bytes).first(layout_.T_size);
    const Address trace = trace_at(number);
    if (trace == 0 || !memory_.read(trace, fields)) continue;
    if (const std::uint64_t size = trace_parts(layout_, fields).snapshot_size; size != 0) return size;
  }
  const std::uint32_t counts = fields_.G_curtrace != no_field
                                   ? field<std::uint32_t>(G_, std::size_t{fields_.G_curtrace} + layout_.T_nsnapmap)
                                   : 0;
  return counts >> 16 != 0 ? old_snapshot_size : new_snapshot_size;
}

std::uint64_t LuajitHeap::jit_bytes() const {
  if (fields_.G_irbuf == no_field) return 0;
  const Address jit = G_ + fields_.G_irbuf;
  const auto count = [&](Offset at) { return std::uint64_t{field<std::uint32_t>(jit, at)}; };
  return (count(jit_fields::irtoplim) - count(jit_fields::irbotlim)) * ir_size +
         count(jit_fields::sizesnap) * snapshot_size() + count(jit_fields::sizesnapmap) * snap_entry_size +
         std::uint64_t{trace_table().size} * layout_.ref_size + constant_array_bytes();
}

// lj_ir.c of 2.0, K64Array: the next one, a count, and 16 constants.
std::uint64_t LuajitHeap::constant_array_bytes() const {
  constexpr std::uint64_t size = 8 + 16 * value_size;
  constexpr int most = 1 << 16;
  if (fields_.G_k64 == no_field) return 0;
  std::uint64_t bytes = 0;
  Address array = ref(G_, fields_.G_k64);
  for (int i = 0; i < most && plausible_pointer(array); ++i) {
    bytes += size;
    array = ref(array, 0);
  }
  return bytes;
}

// lj_ctype.c, lj_ctype_freestate.
std::uint64_t LuajitHeap::ctype_bytes() const {
  const Address cts = fields_.ctype_state;
  if (cts == 0) return 0;
  const std::uint64_t types = field<std::uint32_t>(cts, cts_fields::sizetab) * ctype_size(layout_);
  if (fields_.cts_cbid == no_field) return types;
  const std::uint64_t own = fields_.cts_cbid + cts_fields::hash + sizeof(std::uint16_t) * cts_fields::hash_size;
  return own + types + sizeof(std::uint16_t) * field<std::uint32_t>(cts + fields_.cts_cbid, cts_fields::sizeid);
}

std::uint64_t LuajitHeap::tmpbuf_bytes() const {
  if (fields_.G_tmpbuf == no_field) return 0;
  const Address buffer = G_ + fields_.G_tmpbuf;
  switch (fields_.tmpbuf_form) {
    case BufferForm::pointers:
      return field<Address>(buffer, 8) - field<Address>(buffer, 16);
    case BufferForm::references:
      return field<std::uint32_t>(buffer, 4) - field<std::uint32_t>(buffer, 8);
    case BufferForm::counts:
      return field<std::uint32_t>(buffer, 12);
  }
  return 0;
}

// lj_state.c, close_state.
std::uint64_t LuajitHeap::other_bytes() const {
  const std::uint64_t chains = std::uint64_t{field<std::uint32_t>(G_, fields_.G_strtab + sizeof(Address))} + 1;
  std::uint64_t bytes = fields_.size + chains * layout_.ref_size + tmpbuf_bytes() + jit_bytes() + ctype_bytes();
  // lj_udata.c, lj_lightud_intern, from 2020 on: lightudseg ends the GCState. Older releases have
  // something else there, which is no address.
  const Address segments = ref(gc_root_, 8 * std::size_t{layout_.ref_size} + 8);
  if (fields_.aligned_strings && plausible_pointer(segments)) {
    constexpr Offset lightudnum_before_root = 5;
    const auto last = field<std::uint8_t>(gc_root_ - lightudnum_before_root, 0);
    bytes += sizeof(std::uint32_t) * (last != 0 ? std::uint64_t{1} << std::bit_width(last) : 2);
  }
  return bytes;
}

}  // namespace luaspy
