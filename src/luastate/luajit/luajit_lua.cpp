#include "luastate/luajit/luajit_lua.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <mutex>

#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_allocator.h"
#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/walk_luajit.h"

namespace luaspy {
namespace {

constexpr std::size_t slot = 8;  // bytes
// lj_dispatch.h, GG_State: how far a main thread lies below its global_State, in the known releases
// and somewhat beyond.
constexpr Address nearest_G = 64, farthest_G = 160;

StateFields state_fields(const LuajitLayout& layout) {
  constexpr Address cframe_flags = 3;  // lj_frame.h: CFRAME_RESUME, CFRAME_UNWIND_FF
  StateFields fields;
  fields.tt = layout.L_gct;
  fields.marked = static_cast<Offset>(layout.L_gct - 1);
  fields.G = layout.L_glref;
  fields.tag = luajit::gct_thread;
  fields.short_reference = !layout.gc64;
  fields.anchor = layout.L_cframe;
  fields.anchor_flags = cframe_flags;
  fields.anchor_previous = layout.cframe_previous;
  fields.always_anchored = true;
  fields.nearest_G = nearest_G;
  fields.farthest_G = farthest_G;
  return fields;
}

}  // namespace

LuajitLua::LuajitLua(const LuajitLayout& layout)
    // GC32: the empty string is inside the global_State, so it is aligned to 4 bytes only.
    : Lua(LuaKind::luajit, state_fields(layout), layout.G_registry, layout.fn_nupvalues,
          {.slot = slot,
           .string_header = layout.str_data,
           .string_alignment = static_cast<Offset>(layout.gc64 ? 8 : 4),
           .node = layout.node_size,
           .first_index = 0}),
      layout_(layout) {}

std::span<const LuajitLua* const> luajit_luas() {
  static const LuajitLua wide(layout_rows::luajit_gc64), narrow(layout_rows::luajit_gc32);
  static const std::array<const LuajitLua*, 2> both = {&wide, &narrow};
  return both;
}

const LuajitLua& luajit_lua(const LuajitLayout& layout) {
  static std::mutex mutex;
  // Never freed, as in puc_luas(). There are few: find_globals() tries offsets in small ranges.
  static std::deque<LuajitLua>& all = *new std::deque<LuajitLua>;
  const std::scoped_lock lock(mutex);
  const auto same = std::ranges::find_if(all, [&](const LuajitLua& lua) { return lua.layout() == layout; });
  return same != all.end() ? *same : all.emplace_back(layout);
}

const LuajitLayout* luajit_layout(const Lua& lua) {
  const auto* const luajit = dynamic_cast<const LuajitLua*>(&lua);
  return luajit != nullptr ? &luajit->layout() : nullptr;
}

std::string LuajitLua::name() const { return layout_.gc64 ? "LuaJIT, 64-bit references" : "LuaJIT, 32-bit references"; }

// ---- lua_State and global_State

const char* LuajitLua::misfit(const Memory& memory, Address L) const {
  if (memory.get<std::uint8_t>(L + layout_.L_gct) != luajit::gct_thread) return "it does not have the type of a thread";
  const Address G = read_ref(memory, layout_, L + layout_.L_glref).value_or(0);
  if (!plausible_pointer(G)) return "its glref is not an address";
  LuajitLayout found = layout_;
  if (find_globals(memory, L, G, found)) return nullptr;
  for (Address below = nearest_G; below <= farthest_G; below += 8) {
    if (luaspy::is_thread_of(memory, layout_, G - below, G))
      return "the fields of its global_State are not where any known LuaJIT has them";
  }
  return "there is no main thread right below its global_State";
}

const Lua* LuajitLua::recognise(const Memory& memory, Address L, std::span<const std::byte> head) const {
  LuajitLayout found = layout_;
  return find_globals(memory, L, state().global_of(head), found) ? &luajit_lua(found) : nullptr;
}

const Lua* LuajitLua::recognise_main(const Memory& memory, Address L, Address G) const {
  LuajitLayout found = layout_;
  if (!find_globals(memory, L, G, found) || found.main_L_below != G - L) return nullptr;
  return &luajit_lua(found);
}

bool LuajitLua::is_open(const Memory& memory, Address L, Address G) const {
  LuajitLayout now = layout_.gc64 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  return find_globals(memory, L, G, now) && now == layout_ && layout_.G_gc != no_field;
}

bool LuajitLua::is_unprotected(const Memory&, Address) const { return false; }

bool LuajitLua::is_thread_of(const Memory& memory, Address L, Address G) const {
  return luaspy::is_thread_of(memory, layout_, L, G);
}

Address LuajitLua::main_thread(const Memory&, Address G) const { return G - layout_.main_L_below; }

std::vector<LuaStates::FoundField> LuajitLua::found_fields() const {
  return {{"vmstate", layout_.G_vmstate},   {"mainthref", layout_.G_mainthref},
          {"registry", layout_.G_registry}, {layout_.is_20 ? "jit_L" : "cur_L", layout_.G_cur_L},
          {"jit_base", layout_.G_jit_base}, {"gc", layout_.G_gc},
          {"hookmask", layout_.G_hookmask}, {"trace", layout_.G_trace},
          {"GCstr.len", layout_.str_len},   {"main thread below", layout_.main_L_below}};
}

// ---- Coroutines

bool LuajitLua::situation(const Memory& memory, Address G, Address L, Situation& now) const {
  std::array<std::byte, 96> bytes;
  const auto fields = std::span(bytes).first(layout_.L_stacksize + 4u);
  if (!memory.read(L, fields) || !is_thread_of(memory, L, G)) return false;
  const Address stack = load_ref(layout_, fields, layout_.L_stack), base = load<Address>(fields, layout_.L_base),
                top = load<Address>(fields, layout_.L_top);
  if (!plausible_pointer(stack)) return false;
  now.status = load<std::uint8_t>(fields, layout_.L_status);
  now.first = stack + slot * (layout_.gc64 ? 2 : 1);  // after the thread itself
  now.has_frames = base > now.first;
  now.has_values = top > base;
  now.top = top;
  return true;
}

// There is one hook for all coroutines.
bool LuajitLua::has_hook(const Memory& memory, Address G, Address) const {
  constexpr std::uint8_t events = 0x0f;  // lj_obj.h, HOOK_EVENTMASK
  return layout_.G_hookmask != no_field && (memory.get<std::uint8_t>(G + layout_.G_hookmask).value_or(0) & events) != 0;
}

void LuajitLua::walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const {
  const Address base = memory.get<Address>(L + layout_.L_base).value_or(0);
  walk_luajit({memory, layout_, L}, {}, {base, 0, {}}, limits, walk);
}

std::pair<Address, Address> LuajitLua::stack_of(const Memory& memory, Address L) const {
  const Address stack = read_ref(memory, layout_, L + layout_.L_stack).value_or(0);
  return {stack, stack + slot * Address{memory.get<std::uint32_t>(L + layout_.L_stacksize).value_or(0)}};
}

bool LuajitLua::function_in_slot(const Memory& memory, Address L, Address at, LuaCall& call) const {
  return read_function_at(memory, layout_, L, at, call);
}

// ---- The collector

CollectorState LuajitLua::collector(const Memory& memory, Address G) const {
  // lj_gc.h
  constexpr std::string_view phases[] = {"GCSpause",       "GCSpropagate", "GCSatomic",
                                         "GCSsweepstring", "GCSsweep",     "GCSfinalize"};
  constexpr std::uint8_t white_bits = 0x03;  // LJ_GC_WHITES
  CollectorState state;
  if (layout_.G_gc == no_field) return state;
  const Address gc = G + layout_.G_gc;
  const auto total = read_ref(memory, layout_, gc);
  const auto white = memory.get<std::uint8_t>(gc + 2u * layout_.ref_size),
             phase = memory.get<std::uint8_t>(gc + 2u * layout_.ref_size + 1);
  state.bytes = static_cast<std::int64_t>(total.value_or(0));
  state.mode = "incremental";
  if (phase && white) state.set(phases, *phase, *white, white_bits);
  state.known &= total.has_value();
  // lj_obj.h, GCState: two sizes, the whites and sweepstr, six references, debt. In 2.0, stepmul is before debt.
  const Address estimate = gc + 9u * layout_.ref_size + 8u + (layout_.is_20 ? 4u : 0u);
  if (const std::optional<Address> value = read_ref(memory, layout_, estimate))
    state.estimate = static_cast<std::int64_t>(*value);
  return state;
}

// lj_obj.h: in all releases allocf and allocd are right before the GCState, and that begins with
// `total`, which has the size of a reference (MSize or GCSize).
Address LuajitLua::allocation_function(const Memory& memory, Address G) const {
  if (layout_.G_gc == no_field || layout_.G_gc < 16) return 0;
  return memory.get<Address>(G + layout_.G_gc - 16).value_or(0);
}

// lj_obj.h: since 2020-06 (ff34b48d) strings are as aligned as their length shows, and the seed of their hashes,
// 8 bytes, is right before vmstate.
std::array<AddressRange, 3> LuajitLua::identity_fields(Address G) const {
  if (layout_.G_gc == no_field || layout_.G_gc < 16) return {};
  const Address allocation = G + layout_.G_gc - 16, registry = registry_slot(G), seed_end = G + layout_.G_vmstate;
  const bool has_seed = layout_.G_vmstate != no_field && layout_.str_len == layout_.ref_size + 12;
  return {AddressRange{allocation, allocation + 16}, AddressRange{registry, registry + slot},
          AddressRange{seed_end - (has_seed ? sizeof(std::uint64_t) : 0), seed_end}};
}

AddressRange LuajitLua::heap_counter(Address G) const {
  if (layout_.G_gc == no_field) return {};
  return {G + layout_.G_gc, G + layout_.G_gc + layout_.ref_size};
}

std::int64_t LuajitLua::heap_bytes(std::span<const std::byte> counter) const {
  return layout_.ref_size == 4 ? std::int64_t{load<std::uint32_t>(counter, 0)} : load<std::int64_t>(counter, 0);
}

// In releases that have vmthref, it follows the registry. In releases where the registry comes
// directly after mainthref, a temporary value follows it instead.
Address LuajitLua::finalizer_thread(const Memory& memory, Address G) const {
  if (layout_.G_registry <= layout_.G_mainthref + slot) return 0;
  const Address thread = read_ref(memory, layout_, registry_slot(G) + slot).value_or(0);
  return is_thread_of(memory, thread, G) ? thread : 0;
}

std::optional<AllocatorMemory> LuajitLua::allocator(const Memory& memory, const AddressSpace& space, Address G) const {
  return luajit_allocator(memory, layout_, space, G);
}

SharedLuaMemory LuajitLua::shared_memory(const Memory& memory, const ResidentMemory& resident,
                                         std::span<const AddressRange> taken) const {
  return luajit_shared_memory(memory, resident, taken);
}

Address LuajitLua::first_object(const Memory& memory, Address G) const {
  if (layout_.G_gc == no_field) return 0;
  return read_ref(memory, layout_, G + layout_.G_gc + 2u * layout_.ref_size + 8).value_or(0);
}

// lj_obj.h, GCHeader: nextgc, marked, gct.
bool LuajitLua::read_head(const Memory& memory, Address object, ObjectHead& head) const {
  std::array<std::byte, 16> bytes;
  const auto used = std::span(bytes).first(layout_.L_gct + 1u);
  if (!plausible_pointer(object) || !memory.read(object, used)) return false;
  head.next = load_ref(layout_, used, 0);
  head.marked = load<std::uint8_t>(used, layout_.L_gct - 1u);
  head.type = load<std::uint8_t>(used, layout_.L_gct);
  head.is_thread = head.type == luajit::gct_thread;
  return head.type >= luajit::gct_upvalue && head.type <= luajit::gct_userdata &&
         (head.next == 0 || plausible_pointer(head.next));
}

// ---- Functions

std::uint64_t LuajitLua::mark(const Memory& memory, Address proto) const {
  std::array<std::byte, 128> bytes;
  const auto now = std::span(bytes).first(layout_.pt_size);
  return memory.read(proto, now) ? mark_of(layout_, now) : 0;
}

std::optional<std::int32_t> LuajitLua::line_defined(const Memory& memory, Address proto) const {
  return memory.get<std::int32_t>(proto + layout_.pt_firstline);
}

std::optional<Function> LuajitLua::function(const Memory& memory, Address G, Address closure) const {
  const std::optional<LuajitFunction> read = read_function(memory, layout_, G, closure);
  return read ? std::optional(Function{read->proto, read->key}) : std::nullopt;
}

// Hooks, finalizers and FFI callbacks are called through a C frame of their own, at any
// instruction.
bool LuajitLua::is_named_by_caller(const LuaCall& call) const { return !call.fresh; }

// ---- Values

// lj_obj.h, "Internal object tags": ~0 to ~12, above a reference of 47 or 32 bits; everything else
// is a number.
Value LuajitLua::load_value(std::span<const std::byte> slots, std::size_t offset) const {
  using Type = Value::Type;
  const auto value = load<std::uint64_t>(slots, offset);
  constexpr std::uint64_t key_index = 0xfffe7fff;
  if (value >> 32 == key_index) return {Type::key_index, value & 0xffffffff};
  const int shift = layout_.gc64 ? 47 : 32;
  const std::uint64_t payload = value & ((std::uint64_t{1} << shift) - 1);
  const auto itype = static_cast<std::uint32_t>(static_cast<std::int64_t>(value) >> shift);
  // LJ_TNUMX; the bounds of tvislightud on x64 without GC64.
  constexpr std::uint32_t lowest_type = ~13U, lowest_light = 0xffff0000U, highest_light = 0xffff7fffU;
  if (!layout_.gc64 && itype >= lowest_light && itype <= highest_light)
    return {Type::light_userdata, value & ((std::uint64_t{1} << 47) - 1)};
  if (itype <= lowest_type) return {Type::number, value};
  constexpr std::array types = {Type::nil,   Type::boolean, Type::boolean, Type::light_userdata, Type::string,
                                Type::other, Type::thread,  Type::other,   Type::function,       Type::other,
                                Type::cdata, Type::table,   Type::userdata};
  const std::uint32_t type = ~itype;
  if (type >= types.size()) return {Type::other, payload};
  if (types[type] == Type::nil || types[type] == Type::boolean) return {types[type], type == 2};
  if (types[type] != Type::light_userdata && !plausible_pointer(payload, layout_.gc64 ? 8 : 4))
    return {Type::other, payload};
  return {types[type], payload};
}

// lj_strfmt_num.c: as PUC's up to 5.2, but it writes nan without a sign.
std::string LuajitLua::number_text(const Value& number) const {
  return std::isnan(number.number()) ? "nan" : fmt::format("{:.14g}", number.number());
}

// Its upper bits are replaced by an index (lj_obj.h, lightudV).
std::string LuajitLua::light_userdata_text(std::uint64_t) const { return "light userdata"; }

// lj_ctype.h: the first types have the same numbers in all releases.
std::string LuajitLua::cdata_text(const Memory& memory, Address cdata) const {
  const auto type = memory.get<std::uint16_t>(cdata + layout_.cdata_ctypeid);
  constexpr std::uint16_t int64 = 11, uint64 = 12;
  const Address bytes = cdata + layout_.cdata_size;
  if (type == int64) return fmt::format("{}LL", memory.get<std::int64_t>(bytes).value_or(0));
  if (type == uint64) return fmt::format("{}ULL", memory.get<std::uint64_t>(bytes).value_or(0));
  return type ? fmt::format("cdata {:#x} (ctype {})", bytes, *type) : "cdata ?";
}

Userdata LuajitLua::userdata(const Memory& memory, Address object) const {
  constexpr std::uint8_t io_file = 1;  // lj_obj.h, UDTYPE_IO_FILE
  return {object + layout_.udata_size, read_ref(memory, layout_, object + layout_.tab_metatable).value_or(0),
          memory.get<std::uint8_t>(object + layout_.udata_udtype) == io_file};
}

// lib_io.c: a FILE* and flags.
bool LuajitLua::is_closed_file(const Memory& memory, Address bytes) const {
  return memory.get<Address>(bytes).value_or(0) == 0;
}

std::optional<Characters> LuajitLua::characters(std::span<const std::byte> header) const {
  if (load<std::uint8_t>(header, layout_.L_gct) != luajit::gct_string) return std::nullopt;
  return Characters{load<std::uint32_t>(header, layout_.str_len)};
}

// ---- Tables

std::optional<TableForm> LuajitLua::find_table_form(const Memory&, Address) const { return TableForm{}; }

TableForm LuajitLua::stock_table_form() const { return {}; }

std::pair<Value, Value> LuajitLua::load_node(std::span<const std::byte> node) const {
  return {load_value(node, layout_.node_key), load_value(node, layout_.node_val)};
}

Address LuajitLua::globals_table(const Memory& memory, TableForm, Address, Address L) const {
  return read_ref(memory, layout_, L + layout_.L_env).value_or(0);
}

// ---- The variables of a call

// vm_x64.dasc, BC_FUNCF: parameters that were not given are made. BC_FUNCV moves them.
bool LuajitLua::prepares_parameters(const LuaCall&) const { return true; }

Address LuajitLua::first_local(const Memory&, const LuaCall& call) const { return call.ci + slot; }

namespace {

// A function with varargs has two frames. The outer one of the inner one at `frame`; 0 for any
// other frame.
Address outer_frame(const Memory& memory, const LuajitLayout& layout, Address frame) {
  constexpr std::uint64_t frame_type = 7, frame_vararg = 3;  // lj_frame.h: the low bits of the inner frame's link
  const std::optional<std::uint64_t> word = memory.get<std::uint64_t>(frame);
  if (!word) return 0;
  const std::uint64_t link = layout.gc64 ? *word : *word >> 32;
  const std::uint64_t distance = link & ~frame_type;
  return (link & frame_type) == frame_vararg && distance < most_stack_slots * slot && distance < frame
             ? frame - distance
             : 0;
}

}  // namespace

Slots LuajitLua::varargs(const Memory& memory, const LuaCall& call, std::uint64_t parameters) const {
  const Address outer = outer_frame(memory, layout_, call.ci);
  if (outer == 0) return {};
  const std::uint64_t between = (call.ci - outer) / slot,
                      taken = parameters + (layout_.gc64 ? 2 : 1);  // lj_debug.c, debug_localname
  return between > taken ? Slots{outer + slot * (1 + parameters), between - taken} : Slots{};
}

// lj_frame.h: a frame's base is the slot above it.
Address LuajitLua::first_argument(const Memory&, const LuaCall&, int, const LuaCall& call) const {
  return call.ci != 0 ? call.ci + slot : 0;
}

// lj_debug.c, debug_localname: they end at L->top, or where the next function begins. Fast
// functions in assembler do not set L->top.
Slots LuajitLua::c_slots(const Memory& memory, Address L, const LuaWalk& walk, std::size_t index) const {
  constexpr std::uint8_t ffid_c = 1;  // lj_obj.h, FF_C
  const LuaCall& call = walk.calls[index];
  const bool innermost = index == 0;
  const Address first = call.ci + slot;
  if (innermost && memory.get<std::uint8_t>(call.closure + layout_.fn_ffid) != ffid_c &&
      memory.get<Address>(L + layout_.L_base) != first)
    return {};
  if (!innermost && walk.calls[index - 1].func == 0) return {};
  const Address inner = innermost ? 0 : walk.calls[index - 1].ci;
  const Address below = innermost ? 0 : outer_frame(memory, layout_, inner);
  const Address end = innermost ? memory.get<Address>(L + layout_.L_top).value_or(0)
                                : (below != 0 ? below : inner) - (layout_.gc64 ? 8 : 0);
  if (end <= first || (end - first) % slot != 0 || (end - first) / slot > most_stack_slots) return {};
  return {first, (end - first) / slot};
}

// lj_obj.h, GCfuncC: the function, and then the values.
Address LuajitLua::c_upvalue_slot(Address closure, std::size_t index) const {
  return closure + layout_.fn_f + sizeof(Address) + slot * index;
}

// lib_ffi.c, ffi_meta___call: its first argument is the cdata that was called (lj_meta.c,
// lj_meta_call), which holds a pointer to the C function.
Address LuajitLua::ffi_function(const Memory& live, const Memory& stopped, const LuaCall& call) const {
  constexpr std::uint8_t ffid_c = 1;  // lj_obj.h, FF_C
  if (call.is_lua() || call.func == 0) return 0;
  const std::uint8_t ffid = live.get<std::uint8_t>(call.closure + layout_.fn_ffid).value_or(0);
  const auto argument = stopped.get<std::uint64_t>(call.ci + slot);
  const Address cdata = argument ? object_of(layout_, *argument, luajit::gct_cdata) : 0;
  if (ffid <= ffid_c || cdata == 0) return 0;
  return live.get<Address>(cdata + layout_.cdata_size).value_or(0);
}

Address LuajitLua::upvalue_slot(const Memory& memory, Address closure, std::size_t index) const {
  const Address at = closure + layout_.fn_uvptr + index * layout_.ref_size;
  const Address upvalue = read_ref(memory, layout_, at).value_or(0);
  return plausible_pointer(upvalue) ? read_ref(memory, layout_, upvalue + layout_.uv_v).value_or(0) : 0;
}

}  // namespace luaspy
