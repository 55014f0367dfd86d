#include "luastate/luajit/traces.h"

#include <algorithm>
#include <array>
#include <utility>

#include "luastate/luajit/luajit_functions.h"

namespace luaspy {
namespace {

constexpr std::uint32_t most_traces = 1 << 16;  // TraceNo1 has 16 bits (lj_jit.h)
constexpr std::uint32_t most_snapshots = 1 << 12;
constexpr std::uint32_t most_machine_code = 1 << 24;
constexpr std::size_t most_states = 256;

// lj_jit.h, SnapEntry: slot << 24 | flags | reference of the IR instruction that has the value.
constexpr std::uint32_t snap_frame = 0x010000, snap_cont = 0x020000;
std::uint32_t snap_slot(std::uint32_t entry) { return entry >> 24; }
std::uint32_t snap_ref(std::uint32_t entry) { return entry & 0xffff; }
constexpr std::uint32_t ir_bias = 0x8000;  // REF_BIAS (lj_ir.h): constants lie below

}  // namespace

// lj_record.c, lj_record_setup: the first instruction, IR_BASE, has the parent and its exit as operands.
TraceStart start_of(const Memory& memory, const Trace& trace) {
  constexpr std::size_t instruction = 8;  // bytes (lj_ir.h, IRIns)
  if (trace.root == 0 || !plausible_pointer(trace.ir)) return {};
  const auto operands = memory.get<std::uint32_t>(trace.ir + instruction * Address{ir_bias});
  if (!operands) return {};
  return {*operands & 0xffff, *operands >> 16};
}

Traces::State& Traces::state_of(const LuajitLayout& layout, Address G) {
  if (states_.size() >= most_states && !states_.contains(G)) states_.clear();
  State& state = states_[G];
  if (!state.has_layout) {
    state.layout = layout;
    state.has_layout = find_traces(memory_, G, state.layout);
    if (state.has_layout) place_ = state.layout.G_trace;
  }
  return state;
}

void Traces::reload(State& state, Address G) const {
  state.traces.clear();
  const LuajitLayout& layout = state.layout;
  const Address array = read_ref(memory_, layout, G + layout.G_trace).value_or(0);
  const std::uint32_t count = std::min(memory_.get<std::uint32_t>(G + layout.G_sizetrace).value_or(0), most_traces);
  std::vector<std::byte> references(std::size_t{count} * layout.ref_size);
  if (!plausible_pointer(array) || !memory_.read(array, references)) return;
  std::vector<std::array<std::byte, 128>> bytes;
  std::vector<Memory::Request> requests;
  bytes.reserve(count);
  for (std::uint32_t i = 1; i < count; ++i) {
    const Address object = load_ref(layout, references, std::size_t{i} * layout.ref_size);
    if (!plausible_pointer(object)) continue;
    bytes.emplace_back();
    requests.push_back({object, std::span(bytes.back()).first(layout.T_size), false});
  }
  memory_.read_batch(requests);
  for (const Memory::Request& request : requests) {
    if (!request.done || load<std::uint8_t>(request.into, layout.T_gct) != luajit::gct_trace) continue;
    Trace trace;
    trace.object = request.address;
    trace.number = load<std::uint16_t>(request.into, layout.T_traceno);
    trace.mcode = load<std::uint64_t>(request.into, layout.T_mcode);
    trace.size = load<std::uint32_t>(request.into, layout.T_szmcode);
    trace.root = load<std::uint16_t>(request.into, layout.T_root);
    trace.ir = load<std::uint64_t>(request.into, layout.T_ir);
    trace.start_proto = load_ref(layout, request.into, layout.T_startpt);
    trace.start_pc = load_ref(layout, request.into, layout.T_startpc);
    if (plausible_pointer(trace.mcode, 1) && trace.size != 0 && trace.size < most_machine_code)
      state.traces.push_back(trace);
  }
  std::ranges::sort(state.traces, {}, &Trace::mcode);
}

bool Traces::is_current(const LuajitLayout& layout, const Trace& trace) const {
  return memory_.get<std::uint8_t>(trace.object + layout.T_gct) == luajit::gct_trace &&
         memory_.get<std::uint16_t>(trace.object + layout.T_traceno) == trace.number &&
         memory_.get<std::uint64_t>(trace.object + layout.T_mcode) == trace.mcode &&
         memory_.get<std::uint32_t>(trace.object + layout.T_szmcode) == trace.size;
}

const Trace* Traces::find(const LuajitLayout& layout, Address G, Address pc) {
  State& state = state_of(layout, G);
  if (!state.has_layout) return nullptr;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto after = std::ranges::upper_bound(state.traces, pc, {}, &Trace::mcode);
    if (after != state.traces.begin() && std::prev(after)->contains(pc) && is_current(state.layout, *std::prev(after)))
      return &*std::prev(after);
    if (attempt == 0) reload(state, G);
  }
  return nullptr;
}

const Trace* Traces::numbered(const LuajitLayout& layout, Address G, unsigned number) {
  State& state = state_of(layout, G);
  if (!state.has_layout) return nullptr;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto found = std::ranges::find(state.traces, number, &Trace::number);
    if (found != state.traces.end() && is_current(state.layout, *found)) return &*found;
    if (attempt == 0) reload(state, G);
  }
  return nullptr;
}

// Where in the machine code each snapshot begins. Before 2021-03 that is not recorded, but the
// exits show it: guards are conditional jumps to exit stubs; each stub pushes its number, which is
// the snapshot's (lj_asm_x86.h, asm_exitstub_gen: push imm8; jmp); and a guard comes after its
// snapshot. Exits that are linked to side traces no longer show it.
std::vector<std::uint32_t> Traces::snapshot_offsets(const LuajitLayout& layout, const Trace& trace,
                                                    std::span<const std::byte> snapshots, std::uint32_t count) const {
  std::vector<std::uint32_t> offsets(count, 0);
  if (layout.snapshots.mcofs != 0) {
    for (std::uint32_t i = 0; i < count; ++i)
      offsets[i] = load<std::uint16_t>(snapshots, i * layout.snapshots.size + layout.snapshots.mcofs);
    return offsets;
  }
  std::vector<std::byte> code(trace.size);
  if (!memory_.read(trace.mcode, code)) return {};
  std::vector<std::uint32_t> found(count, trace.size);
  constexpr int most_guards = 1 << 13;
  int guards = 0;
  for (std::size_t i = 0; i + 6 <= code.size(); ++i) {
    if (code[i] != std::byte{0x0f} || (code[i + 1] & std::byte{0xf0}) != std::byte{0x80}) continue;
    const Address target = trace.mcode + i + 6 + static_cast<Address>(std::int64_t{load<std::int32_t>(code, i + 2)});
    if (trace.contains(target)) continue;
    if (++guards > most_guards) break;
    const std::uint16_t stub = memory_.get<std::uint16_t>(target).value_or(0);
    const std::uint32_t number = stub >> 8;
    if ((stub & 0xff) == 0x6a && number < count) found[number] = std::min(found[number], static_cast<std::uint32_t>(i));
  }
  // A snapshot without a guard of its own begins where the next one does.
  for (std::uint32_t i = count; i-- > 0;) {
    if (i + 1 < count) found[i] = std::min(found[i], found[i + 1]);
  }
  // The code before a snapshot's first guard belongs to that snapshot.
  for (std::uint32_t i = 1; i < count; ++i)
    offsets[i] = found[i - 1] < trace.size ? std::min(found[i], found[i - 1] + 6) : found[i];
  return offsets;
}

// Is there an IR_RETF (lj_ir.h) in between: a return to a frame below the one that the trace began
// in? It moves jit_base.
bool Traces::returns_between(const LuajitLayout& layout, const Trace& trace, std::uint32_t first,
                             std::uint32_t last) const {
  constexpr std::uint8_t retf = 11;
  constexpr std::size_t size = 8, opcode = 5;  // IRIns
  const Address ir = memory_.get<Address>(trace.object + layout.T_ir).value_or(0);
  if (!plausible_pointer(ir) || first > last || last > 0xffff) return true;
  std::vector<std::byte> instructions(size * (last - first));
  if (!memory_.read(ir + size * Address{first}, instructions)) return true;
  for (std::size_t at = 0; at < instructions.size(); at += size) {
    if (load<std::uint8_t>(instructions, at + opcode) == retf) return true;
  }
  return false;
}

Address Traces::function_constant(const LuajitLayout& layout, Address ir, std::uint32_t ref) const {
  if (ref >= ir_bias) return 0;
  // lj_ir.h, IRIns: a 64-bit constant fills the next instruction; a 32-bit one is in the
  // instruction itself.
  const Address function = layout.gc64 ? memory_.get<std::uint64_t>(ir + 8 * (Address{ref} + 1)).value_or(0)
                                       : memory_.get<std::uint32_t>(ir + 8 * Address{ref}).value_or(0);
  return plausible_pointer(function) && memory_.get<std::uint8_t>(function + layout.fn_gct) == luajit::gct_function
             ? function
             : 0;
}

InlinedCode Traces::decode_snapshot(const State& state, Address L, const Trace& trace, const Snapshot& snapshot,
                                    Address jit_base, const Memory& stack) const {
  const LuajitLayout& layout = state.layout;
  const auto root = std::ranges::find(state.traces, trace.root, &Trace::number);
  const Address root_pc = trace.root == 0 ? trace.start_pc : root != state.traces.end() ? root->start_pc : 0;
  InlinedCode code;
  const Address map = memory_.get<Address>(trace.object + layout.T_snapmap).value_or(0),
                ir = memory_.get<Address>(trace.object + layout.T_ir).value_or(0);
  if (!plausible_pointer(map, 4) || snapshot.next_map <= snapshot.map + snapshot.entries ||
      snapshot.next_map - snapshot.map > 512)
    return code;
  std::vector<std::uint32_t> entries(snapshot.next_map - snapshot.map);
  if (!memory_.read(map + 4 * Address{snapshot.map}, std::as_writable_bytes(std::span(entries)))) return code;
  const std::size_t count = snapshot.entries;
  if (layout.gc64) {
    if (entries.size() < count + 2) return code;
    const std::uint64_t pc_and_base = entries[count] | std::uint64_t{entries[count + 1]} << 32;
    code.pc = (pc_and_base >> 8) + 4;
    code.base = jit_base + 8 * (pc_and_base & 0xff);
  } else {
    code.pc = Address{entries[count]} + 4;
    code.base = jit_base;
  }
  std::size_t link = entries.size() - 1;  // 32-bit references: links are read backwards from the end of the map
  // lj_record.c, rec_mm_prep: for the frame whose function is in the next slot.
  Address continuation_pc = 0;
  Address tail_called = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t slot = snap_slot(entries[i]);
    // The map has the function of jit_base's own frame only if it differs from what was loaded from
    // the stack: after a tail call, or a return to a frame below the trace's first.
    if (slot == 0) tail_called = function_constant(layout, ir, snap_ref(entries[i]));
    if ((entries[i] & (snap_frame | snap_cont)) == 0) continue;
    InlinedFrame frame;
    if (layout.gc64) {
      // Slots 0 and 1 are the function and the link of jit_base's frame. A link is a constant, and
      // so is a continuation's pc; the function is in the slot below.
      if (slot <= 1 || snap_ref(entries[i]) >= ir_bias) continue;
      const std::uint64_t constant = memory_.get<std::uint64_t>(ir + 8 * (Address{snap_ref(entries[i])} + 1))
                                         .value_or(0);
      if ((entries[i] & snap_cont) != 0) {
        continuation_pc = constant;
        continue;
      }
      frame.frame = jit_base - 16 + 8 * Address{slot};
      frame.link = constant;
      const bool has_function = i > 0 && snap_slot(entries[i - 1]) + 1 == slot;
      if (has_function) frame.function = function_constant(layout, ir, snap_ref(entries[i - 1]));
      if (!has_function)
        frame.function = object_of(layout, stack.get<std::uint64_t>(frame.frame - 8).value_or(0), luajit::gct_function);
    } else {
      if (slot == 0) continue;
      if (link <= count) return {};
      // lj_snap.c, snapshot_framelinks: a continuation's pc comes after its frame's link.
      const std::uint32_t word = entries[link--];
      if ((entries[i] & snap_cont) != 0) {
        continuation_pc = word;
        continue;
      }
      frame.link = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(word)});
      if ((frame.link & 3) == 0) frame.link &= 0xffffffff;
      frame.frame = jit_base - 8 + 8 * Address{slot};
      frame.function = function_constant(layout, ir, snap_ref(entries[i]));
      code.base = frame.frame + 8;
    }
    frame.continuation_pc = std::exchange(continuation_pc, 0);
    code.frames.insert(code.frames.begin(), frame);
  }
  const std::uint64_t base_slot = stack.get<std::uint64_t>(jit_base - (layout.gc64 ? 16 : 8)).value_or(0);
  if (tail_called == (layout.gc64 ? object_of(layout, base_slot, luajit::gct_function) : base_slot & 0xffffffff))
    tail_called = 0;
  if (tail_called != 0 && returns_between(layout, trace, ir_bias + 1, snapshot.ref))
    return {};  // jit_base is still the earlier one
  if (tail_called != 0) code.frames.push_back({jit_base - 8, 0, tail_called, 0, 0});
  // If a function has many closures, a trace of it does not record which one runs. Its instructions
  // show the prototype.
  Address pc = code.pc - 4;
  for (InlinedFrame& frame : code.frames) {
    if (frame.function == 0) frame.proto = proto_of(memory_, layout, pc);
    pc = (frame.link & 3) == 0 ? frame.link - 4 : frame.continuation_pc != 0 ? frame.continuation_pc - 4 : 0;
    if (frame.function == 0 && frame.proto == 0) return {};
  }
  if (!code.frames.empty() && code.frames.front().frame + 8 != code.base) return {};
  if (code.frames.empty() && code.base != jit_base) return {};
  // Around a return to a lower frame (IR_RETF), jit_base may be that of the snapshot before or of
  // the one after. With a tail call, the stack has the function in which the tree of traces began.
  if (tail_called != 0) pc = root_pc;
  if (!is_base(stack, layout, L, jit_base, pc != 0 ? pc + 4 : 0)) return {};
  return code;
}

Traces::Snapshots Traces::read_snapshots(const LuajitLayout& layout, const Trace& trace) const {
  Snapshots snapshots;
  const std::uint32_t count = memory_.get<std::uint16_t>(trace.object + layout.T_nsnap).value_or(0);
  snapshots.map_size = memory_
                           .get<std::uint16_t>(trace.object + layout.T_nsnapmap +
                                               (layout.snapshots.mapofs_size == 2 ? 2u : 0u))
                           .value_or(0);
  if (count > most_snapshots) return snapshots;
  snapshots.bytes.resize(std::size_t{count} * layout.snapshots.size);
  if (memory_.read(memory_.get<Address>(trace.object + layout.T_snap).value_or(0), snapshots.bytes))
    snapshots.count = count;
  return snapshots;
}

Traces::Snapshot Traces::snapshot(const LuajitLayout& layout, const Snapshots& snapshots, std::uint32_t number) {
  const SnapshotForm& form = layout.snapshots;
  const auto map_at = [&](std::uint32_t n) -> std::uint32_t {
    if (n == snapshots.count) return snapshots.map_size;
    const std::size_t at = std::size_t{n} * form.size;
    return form.mapofs_size == 2 ? load<std::uint16_t>(snapshots.bytes, at) : load<std::uint32_t>(snapshots.bytes, at);
  };
  const std::size_t at = std::size_t{number} * form.size;
  return {map_at(number), load<std::uint8_t>(snapshots.bytes, at + form.nent), map_at(number + 1),
          load<std::uint16_t>(snapshots.bytes, at + form.mapofs_size)};
}

InlinedCode Traces::decode(Address G, Address L, const Trace& trace, Address pc, Address jit_base,
                           const Memory& stack) const {
  InlinedCode start;
  start.base = jit_base;
  start.pc = trace.start_pc + 4;
  const auto state = states_.find(G);
  if (state == states_.end() || !state->second.has_layout) return start;
  const LuajitLayout& layout = state->second.layout;
  const Snapshots snapshots = read_snapshots(layout, trace);
  if (snapshots.count == 0) return start;
  const std::vector<std::uint32_t> offsets = snapshot_offsets(layout, trace, snapshots.bytes, snapshots.count);
  if (offsets.empty()) return start;
  const auto after = std::ranges::upper_bound(offsets, static_cast<std::uint32_t>(pc - trace.mcode));
  const auto number = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - offsets.begin() - 1, 0));
  const Snapshot before = snapshot(layout, snapshots, number);
  InlinedCode code = decode_snapshot(state->second, L, trace, before, jit_base, stack);
  // Between a snapshot and the next, the trace may enter or leave a function. The deeper snapshot
  // is taken, since most of the time is usually spent there.
  if (number + 1 < snapshots.count) {
    const Snapshot behind = snapshot(layout, snapshots, number + 1);
    InlinedCode next;
    if (!returns_between(layout, trace, before.ref, behind.ref))
      next = decode_snapshot(state->second, L, trace, behind, jit_base, stack);
    if (next.base > code.base && next.pc != 0) code = std::move(next);
  }
  // The snapshot may be wrong around a return to a frame below the trace's first, and where the
  // start of a snapshot is not recorded. Then a nearby one may be right.
  for (const int distance : {1, -1, 2, -2}) {
    const auto other = static_cast<std::uint32_t>(static_cast<int>(number) + distance);
    if (code.pc == 0 && other < snapshots.count)
      code = decode_snapshot(state->second, L, trace, snapshot(layout, snapshots, other), jit_base, stack);
  }
  return code.pc != 0 ? code : start;
}

InlinedCode Traces::at_exit(Address G, Address L, const Trace& trace, std::uint32_t number, Address jit_base,
                            const Memory& stack) const {
  const auto state = states_.find(G);
  if (state == states_.end() || !state->second.has_layout) return {};
  const Snapshots snapshots = read_snapshots(state->second.layout, trace);
  if (number >= snapshots.count) return {};
  return decode_snapshot(state->second, L, trace, snapshot(state->second.layout, snapshots, number), jit_base, stack);
}

}  // namespace luaspy
