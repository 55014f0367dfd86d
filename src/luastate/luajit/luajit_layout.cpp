#include "luastate/luajit/luajit_layout.h"

#include <array>
#include <string_view>
#include <vector>

namespace luaspy {
namespace {

// Bytes of a global_State that are searched: up to gcroot's first elements in every release.
constexpr std::size_t globals_size = 640;
constexpr std::size_t jit_state_reach = 2048;  // from jit_base to jit_State.trace
constexpr int most_trace_checks = 64;

// lj_dispatch.h, GG_State: the main thread, then its global_State. lua_State has 64 to 112 bytes in
// the known releases.
std::optional<Address> main_thread_below(const Memory& memory, const LuajitLayout& layout, Address G) {
  for (Address below = 64; below <= 160; below += 8) {
    if (is_thread_of(memory, layout, G - below, G)) return G - below;
  }
  return std::nullopt;
}

// lj_state.c, lj_dispatch.c: bc_cfunc_int and bc_cfunc_ext are one instruction each, BC_FUNCC and
// BC_FUNCC or BC_FUNCCW, with A = LUA_MINSTACK; cur_L follows, or in 2.0 jit_L. luaJIT_setmode with
// LUAJIT_MODE_WRAPCFUNC (lj_dispatch.c) rewrites the second one when switched on or off, in some
// releases with A = 0.
bool is_function_header_pair(std::uint32_t internal, std::uint32_t external) {
  constexpr std::uint32_t minimum_stack = 20, opcode = 0xff;  // LUA_MINSTACK (lua.h)
  if (internal >> 8 != minimum_stack || (internal & opcode) == 0) return false;
  return (external >> 8 == minimum_stack || external >> 8 == 0) && (external & opcode) - (internal & opcode) <= 1;
}

bool is_string(const Memory& memory, const LuajitLayout& layout, Address string, Offset data,
               std::string_view expected) {
  std::array<char, 8> text{};
  const auto bytes = std::as_writable_bytes(std::span(text));
  return plausible_pointer(string) && memory.get<std::uint8_t>(string + layout.L_gct) == luajit::gct_string &&
         memory.read(string + data, bytes) &&
         std::string_view(text.data(), expected.size() + 1) == std::string_view(expected.data(), expected.size() + 1);
}

// The names of metamethods are strings that gcroot refers to; the first is "__index" (lj_obj.h,
// MMDEF).
bool find_strings(const Memory& memory, std::span<const std::byte> globals, LuajitLayout& layout) {
  constexpr std::string_view first_name = "__index";
  for (std::size_t at = layout.G_jit_base; at + layout.ref_size <= globals.size(); at += layout.ref_size) {
    const Address string = load_ref(layout, globals, at);
    for (const Offset data : {Offset{24}, Offset{20}, Offset{16}}) {
      if (!is_string(memory, layout, string, data, first_name)) continue;
      for (const Offset len : {Offset{20}, Offset{16}, Offset{12}}) {
        if (len >= data || memory.get<std::uint32_t>(string + len) != first_name.size()) continue;
        layout.str_data = data;
        layout.str_len = len;
        layout.G_gcroot = static_cast<Offset>(at);
        return true;
      }
    }
  }
  return false;
}

// Where vmstate and the registry are. Releases in which global_State's fields have the same order
// have the same distances to the main thread's reference; the place of that reference identifies
// them.
struct GlobalsForm {
  bool gc64;
  Offset mainthref_to_cur_L, mainthref;  // 0: any offset
  int mainthref_to_vmstate, mainthref_to_registry, mainthref_to_hookmask;
  bool more_vmstates = false, is_20 = false;
};
constexpr GlobalsForm globals_forms[] = {
    {false, 96, 148, 84, 4, -3, false, true},  // 2.0
    {true, 144, 0, -72, 8, -7},                // to 2020-06
    {false, 120, 240, 80, 8, -3, true},        // Tarantool of 2024
    {false, 120, 0, -40, 8, -3},               // to 2020-06, and Tarantool 2.6
    {true, 0, 0, -8, 80, -47},                 // from 2020-06 on (ff34b48d)
    {false, 0, 0, -4, 76, -43},
};

bool find_main_reference(std::span<const std::byte> globals, Address main, LuajitLayout& layout) {
  // GCState comes first, and may also refer to the main thread.
  constexpr std::size_t after_gc_state = 120;
  for (std::size_t at = after_gc_state; at < layout.G_cur_L; at += layout.ref_size) {
    if (load_ref(layout, globals, at) != main) continue;
    for (const GlobalsForm& form : globals_forms) {
      if (form.gc64 != layout.gc64 || (form.mainthref != 0 && form.mainthref != at)) continue;
      if (form.mainthref_to_cur_L != 0 && form.mainthref_to_cur_L != layout.G_cur_L - at) continue;
      const auto vmstate = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) + form.mainthref_to_vmstate);
      const std::size_t registry = at + static_cast<std::size_t>(form.mainthref_to_registry);
      constexpr std::int32_t lowest_state = -10, highest_trace = 1 << 16;
      const auto state = load<std::int32_t>(globals, vmstate);
      if (state < lowest_state || state >= highest_trace ||
          object_of(layout, load<std::uint64_t>(globals, registry), luajit::gct_table) == 0)
        continue;
      layout.G_mainthref = static_cast<Offset>(at);
      layout.G_vmstate = static_cast<Offset>(vmstate);
      layout.G_registry = static_cast<Offset>(registry);
      layout.G_hookmask = static_cast<Offset>(static_cast<std::ptrdiff_t>(at) + form.mainthref_to_hookmask);
      layout.more_vmstates = form.more_vmstates;
      layout.is_20 = form.is_20;
      return true;
    }
  }
  return false;
}

// lj_obj.h, GCState: total, threshold (GCSize: as wide as a reference), currentwhite, state, two
// more bytes, sweepstr, root. Before it are the allocator and, in some releases, the counters of
// the string table: 16, 32 or, with LUAJIT_SMART_STRINGS, 64 bytes.
bool find_collector(const Memory& memory, std::span<const std::byte> globals, LuajitLayout& layout) {
  constexpr std::uint8_t whites = 3, last_state = 5;  // lj_gc.h: LJ_GC_WHITES; GCSfinalize
  for (std::size_t at = 16; at <= 96; at += 8) {
    const std::size_t white_at = at + 2u * layout.ref_size;
    const std::uint8_t white = load<std::uint8_t>(globals, white_at) & whites;
    if ((white != 1 && white != 2) || load<std::uint8_t>(globals, white_at + 1) > last_state) continue;
    const auto is_object = [&](Address object) {
      const std::uint8_t gct = plausible_pointer(object) ? memory.get<std::uint8_t>(object + layout.L_gct).value_or(0)
                                                         : std::uint8_t{0};
      return gct >= luajit::gct_upvalue && gct <= luajit::gct_userdata;  // strings are elsewhere
    };
    // The youngest object is in the list before its type is set (lj_gc.c, lj_mem_newgco).
    const Address root = load_ref(layout, globals, white_at + 8);
    if (!plausible_pointer(root) || (!is_object(root) && !is_object(read_ref(memory, layout, root).value_or(0))))
      continue;
    layout.G_gc = static_cast<Offset>(at);
    return true;
  }
  return false;
}

// A trace's snapshots are in order, and their maps fill its snapshot map, except for what
// lj_snap_shrink removed (lj_snap.c). The tail of the machine code may shrink after the last mcofs
// was recorded (lj_asm.c, asm_tail_fixup).
bool has_form(const Memory& memory, const LuajitLayout& layout, Address trace, std::uint32_t nsnap,
              const SnapshotForm& form) {
  const Address snapshots = memory.get<Address>(trace + layout.T_snap).value_or(0);
  const std::optional<std::uint32_t> szmcode = memory.get<std::uint32_t>(trace + layout.T_szmcode);
  std::uint32_t entries = memory.get<std::uint16_t>(trace + layout.T_nsnapmap).value_or(0);
  if (form.mapofs_size == 2) entries = memory.get<std::uint16_t>(trace + layout.T_nsnapmap + 2u).value_or(0);
  if (!szmcode || nsnap == 0 || nsnap > 1024 || entries == 0) return false;
  std::vector<std::byte> bytes(nsnap * form.size);
  if (!memory.read(snapshots, bytes)) return false;
  constexpr std::uint32_t gap = 256;
  std::uint32_t end = 0, last_mcofs = 0;
  for (std::uint32_t i = 0; i < nsnap; ++i) {
    const auto snapshot = std::span(bytes).subspan(i * form.size, form.size);
    const std::uint32_t mapofs = form.mapofs_size == 2 ? load<std::uint16_t>(snapshot, 0)
                                                       : load<std::uint32_t>(snapshot, 0);
    const std::uint32_t mcofs = form.mcofs != 0 ? load<std::uint16_t>(snapshot, form.mcofs) : 0;
    if (mapofs < end || mapofs > end + gap || mcofs < last_mcofs || mcofs > *szmcode + gap) return false;
    end = mapofs + load<std::uint8_t>(snapshot, form.nent) + (layout.gc64 ? 2 : 1);
    last_mcofs = mcofs;
  }
  return end <= entries && entries <= end + gap;
}

}  // namespace

bool is_thread_of(const Memory& memory, const LuajitLayout& layout, Address L, Address G) {
  return plausible_pointer(L) && memory.get<std::uint8_t>(L + layout.L_gct) == luajit::gct_thread &&
         read_ref(memory, layout, L + layout.L_glref) == G;
}

// lj_obj.h; vm_x86.dasc of 2.0, BC_JLOOP and ->vm_exit_handler: jit_base keeps its value when
// machine code is left, jit_L does not.
TraceBase read_trace_base(const Memory& memory, const LuajitLayout& layout, Address G) {
  TraceBase now;
  now.L = read_ref(memory, layout, G + layout.G_cur_L).value_or(0);
  if (!layout.is_20 || now.L != 0) now.base = read_ref(memory, layout, G + layout.G_jit_base).value_or(0);
  return now;
}

bool find_globals(const Memory& memory, Address L, Address G, LuajitLayout& layout) {
  std::array<std::byte, globals_size> globals;
  if (!plausible_pointer(G) || !is_thread_of(memory, layout, L, G) || !memory.read(G, globals)) return false;
  const std::optional<Address> main = main_thread_below(memory, layout, G);
  if (!main) return false;
  layout.main_L_below = static_cast<Offset>(G - *main);
  for (Offset at = 200; at + 64u < globals_size; at = static_cast<Offset>(at + layout.ref_size)) {
    const auto internal = load<std::uint32_t>(globals, at);
    if (!is_function_header_pair(internal, load<std::uint32_t>(globals, at + 4))) continue;
    constexpr std::uint8_t funcc_above_funcf = 6;  // lj_bc.h
    layout.first_header = static_cast<std::uint8_t>((internal & 0xff) - funcc_above_funcf);
    layout.G_cur_L = static_cast<Offset>(at + 8);
    const Address current = load_ref(layout, globals, layout.G_cur_L);
    if (current != 0 && !is_thread_of(memory, layout, current, G)) continue;
    if (!find_main_reference(globals, *main, layout)) continue;
    // Tarantool of 2024 has mem_L between the two.
    layout.G_jit_base = static_cast<Offset>(layout.G_cur_L + (layout.more_vmstates ? 2 : 1) * layout.ref_size);
    if (!find_collector(memory, globals, layout)) layout.G_gc = no_field;
    return find_strings(memory, globals, layout);
  }
  return false;
}

bool find_traces(const Memory& memory, Address G, LuajitLayout& layout) {
  std::array<std::byte, jit_state_reach> state;
  const Address from = G + layout.G_jit_base;
  if (!memory.read(from, state)) return false;
  for (std::size_t at = 8; at + 16 <= state.size(); at += layout.ref_size) {
    const Address traces = load_ref(layout, state, at);
    const std::size_t size_at = at + 12;
    const auto size = load<std::uint32_t>(state, size_at);
    if (!plausible_pointer(traces) || size < 2 || size > (1 << 16) || read_ref(memory, layout, traces) != Address{0})
      continue;
    Address some = 0;
    bool all_traces = true;
    for (std::uint32_t i = 1; i < size && i <= most_trace_checks && all_traces; ++i) {
      const std::optional<Address> trace = read_ref(memory, layout, traces + std::uint64_t{layout.ref_size} * i);
      if (!trace) all_traces = false;
      if (!trace || *trace == 0) continue;
      all_traces = plausible_pointer(*trace) && memory.get<std::uint8_t>(*trace + layout.T_gct) == luajit::gct_trace &&
                   memory.get<std::uint16_t>(*trace + layout.T_traceno) == static_cast<std::uint16_t>(i);
      some = *trace;
    }
    if (some == 0 || !all_traces) continue;
    // lj_jit.h: 12 bytes from 2021-03, 12 without mcofs before, 8 in 2017.
    constexpr SnapshotForm forms[] = {{12, 4, 10, 6}, {12, 4, 8, 0}, {8, 2, 6, 0}};
    for (const SnapshotForm& form : forms) {
      const auto nsnap_at = static_cast<Offset>(form.size == 8 ? layout.T_nsnapmap : layout.T_gct + 1);
      if (!has_form(memory, layout, some, memory.get<std::uint16_t>(some + nsnap_at).value_or(0), form)) continue;
      layout.T_nsnap = nsnap_at;
      layout.snapshots = form;
      layout.G_trace = static_cast<Offset>(layout.G_jit_base + at);
      layout.G_sizetrace = static_cast<Offset>(layout.G_jit_base + size_at);
      return true;
    }
  }
  return false;
}

Address load_ref(const LuajitLayout& layout, std::span<const std::byte> bytes, std::size_t offset) {
  return layout.gc64 ? load<std::uint64_t>(bytes, offset) : load<std::uint32_t>(bytes, offset);
}

std::optional<Address> read_ref(const Memory& memory, const LuajitLayout& layout, Address address) {
  if (layout.gc64) return memory.get<std::uint64_t>(address);
  return memory.get<std::uint32_t>(address);
}

// lj_obj.h, "Internal object tags": with GC64 the type is in bits 47 to 63, above a 47-bit
// reference; otherwise it is the upper word.
Address object_of(const LuajitLayout& layout, std::uint64_t value, std::uint8_t gct) {
  constexpr int type_shift_64 = 47, type_shift_32 = 32;
  const int shift = layout.gc64 ? type_shift_64 : type_shift_32;
  const std::uint64_t type = ~std::uint64_t{gct} & (~std::uint64_t{0} >> shift);
  if (value >> shift != type) return 0;
  return value & ((std::uint64_t{1} << shift) - 1);
}

}  // namespace luaspy
