#include "luastate/luajit/luajit_heap.h"

#include <algorithm>
#include <array>

#include "luastate/cycle_detector.h"
#include "luastate/luajit/frame_steps.h"

namespace luaspy {
namespace {

constexpr std::uint8_t fixed_mark = 0x20;  // lj_gc.h, LJ_GC_FIXED
constexpr std::uint64_t slot = 8;          // bytes
constexpr std::uint32_t ir_bias = 0x8000;  // lj_ir.h, REF_BIAS

}  // namespace

LuajitHeap::LuajitHeap(const Memory& memory, const LuajitLua& lua, Address G, const LuajitHeapFields& fields)
    : HeapReader(memory, lua, G),
      luajit_(lua),
      layout_(lua.layout()),
      fields_(fields),
      gc_root_(G + layout_.G_gc + 2 * std::size_t{layout_.ref_size} + 8) {
  dead_white_ = lua.collector(memory, G).dead_white;
}

std::unique_ptr<HeapReader> LuajitLua::heap_reader(const Memory& memory, Address G) const {
  const std::optional<LuajitHeapFields> fields = find_heap_fields(memory, layout_, G);
  if (!fields) return nullptr;
  return std::make_unique<LuajitHeap>(memory, *this, G, *fields);
}

Address LuajitHeap::mode_name() const {
  constexpr std::size_t mm_mode = 3;  // lj_obj.h, MMDEF
  return ref(G_, layout_.G_gcroot + mm_mode * layout_.ref_size);
}

// ---- Objects

std::optional<ObjectType> LuajitHeap::type_of(Address object, std::uint8_t gct) const {
  switch (gct) {
    case luajit::gct_string:
      return ObjectType::string;
    case luajit::gct_upvalue:
      return ObjectType::upvalue;
    case luajit::gct_thread:
      return ObjectType::thread;
    case luajit::gct_proto:
      return ObjectType::prototype;
    case luajit::gct_function:
      return field<std::uint8_t>(object, layout_.fn_ffid) == 0 ? ObjectType::lua_function : ObjectType::c_function;
    case luajit::gct_trace:
      return ObjectType::trace;
    case luajit::gct_cdata:
      return ObjectType::cdata;
    case luajit::gct_table:
      return ObjectType::table;
    case luajit::gct_userdata:
      return ObjectType::userdata;
    default:
      return std::nullopt;
  }
}

// lj_gc.c, gc_sweep: what is fixed lives, whatever its colour.
bool LuajitHeap::is_dead(std::uint8_t marked) const {
  return (marked & dead_white_) != 0 && (marked & fixed_mark) == 0;
}

// lj_str.c: the low bit of a chain's anchor tells that it uses secondary hashes. lj_gc.c,
// gc_sweepstr: the anchor of the chain that is being swept may still refer to what was freed; then the
// rest of the chain is not found.
bool LuajitHeap::visit_strings(std::uint64_t& most, const VisitString& visit) const {
  constexpr std::uint64_t most_chains = 1 << 26;  // lj_def.h, LJ_MAX_STRTAB
  const auto table = field<Address>(G_, fields_.G_strtab);
  const std::uint64_t chains = std::uint64_t{field<std::uint32_t>(G_, fields_.G_strtab + sizeof(Address))} + 1;
  if (!plausible_pointer(table) || chains > most_chains) return false;
  std::int64_t strings = 0;
  const auto visit_chain = [&](Address string) {
    CycleDetector circle;
    while (string != 0) {
      std::array<std::byte, 32> bytes;
      const auto header = std::span(bytes).first(layout_.str_data);
      if (circle.closes(string) || most == 0 || !plausible_pointer(string) || !memory_.read(string, header) ||
          load<std::uint8_t>(header, layout_.L_gct) != luajit::gct_string)
        return false;
      --most;
      ++strings;
      visit(string, load<std::uint8_t>(header, layout_.L_gct - 1u), load<std::uint32_t>(header, layout_.str_len));
      string = load_ref(layout_, header, 0);
    }
    return true;
  };
  bool complete = true;
  const bool readable = visit_elements(memory_, table, layout_.ref_size, chains, [&](std::span<const std::byte> chain) {
    complete &= visit_chain(load_ref(layout_, chain, 0) & ~Address{1});
    return most != 0;
  });
  // While the table is being resized, most strings are in neither the old nor the new one. One may
  // be just being made or freed.
  const std::int64_t missing = field<std::uint32_t>(G_, fields_.G_strtab + sizeof(Address) + 4) - strings;
  return readable && complete && missing >= -1 && missing <= 1;
}

// gc.mmudata is the last one of a ring: userdata and cdata whose finalizer will be called.
bool LuajitHeap::visit_waiting(std::uint64_t& most, const VisitInList& visit) const {
  const Address last = ref(gc_root_, 5 * std::size_t{layout_.ref_size});
  CycleDetector circle;
  for (Address object = last; object != 0;) {
    ObjectHead head;
    if (circle.closes(object) || most == 0 || !luajit_.read_head(memory_, object, head)) return false;
    --most;
    visit(object, head.type, head.marked);
    object = head.next != last ? head.next : 0;
  }
  return true;
}

bool LuajitHeap::visit_objects(std::uint64_t most, const std::function<void(const HeapObject&)>& visit) const {
  bool complete = true;
  const auto visit_one = [&](Address object, std::uint8_t gct, std::uint8_t marked) {
    const std::optional<ObjectType> type = type_of(object, gct);
    if (!type) return;
    // The youngest one may have its type, and not all of its fields.
    visit({object, *type, is_dead(marked), believable(size_of(object, *type))});
  };
  complete &= visit_list(luajit_.first_object(memory_, G_), most,
                         [&](Address object, std::uint8_t gct, std::uint8_t marked) {
                           visit_one(object, gct, marked);
                           // Closed upvalues are in the collector's list.
                           if (gct == luajit::gct_thread)
                             complete &= visit_list(ref(object, layout_.L_openupval), most, visit_one);
                         });
  complete &= visit_waiting(most, visit_one);
  complete &= visit_strings(most, [&](Address string, std::uint8_t marked, std::uint32_t length) {
    visit({string, ObjectType::string, is_dead(marked), believable(string_size(length))});
  });
  return complete;
}

// lj_func.c, lj_func_closeuv: when it is closed. lj_udata.c, lj_udata_new: behind the main thread.
bool LuajitHeap::keeps_order(ObjectType type) const {
  return type != ObjectType::upvalue && type != ObjectType::userdata;
}

std::optional<HeapObject> LuajitHeap::object_at(Address address, bool is_new) const {
  std::array<std::byte, 16> bytes;
  const auto head = std::span(bytes).first(layout_.L_gct + 1u);
  if (!plausible_pointer(address) || !memory_.read(address, head)) return std::nullopt;
  const std::optional<ObjectType> type = type_of(address, load<std::uint8_t>(head, layout_.L_gct));
  const auto marked = load<std::uint8_t>(head, layout_.L_gct - 1u);
  if (!type || !luajit_.collector(memory_, G_).may_be_alive(marked, is_new)) return std::nullopt;
  switch (*type) {
    case ObjectType::string:
      return HeapObject{address, *type, false, string_size(field<std::uint32_t>(address, layout_.str_len))};
    case ObjectType::table:
      return HeapObject{address, *type, false, own_table_size(address)};
    case ObjectType::thread:
      return HeapObject{address, *type, false, layout_.main_L_below};
    default:
      return HeapObject{address, *type, false, size_of(address, *type)};
  }
}

// ---- References

void LuajitHeap::visit_references(const HeapObject& object, const VisitReference& visit) const {
  if (object.size == 0) return;
  const Address at = object.address;
  switch (object.type) {
    case ObjectType::table:
      return visit_table(at, visit);
    case ObjectType::lua_function:
    case ObjectType::c_function:
      return visit_function(object, visit);
    case ObjectType::userdata:
      return visit_userdata(at, visit);
    case ObjectType::thread:
      return visit_thread(at, visit);
    case ObjectType::prototype:
      return visit_prototype(at, visit);
    case ObjectType::trace:
      return visit_trace(at, visit);
    case ObjectType::upvalue:
      return visit_slots(ref(at, layout_.uv_v), 1, {at, 0, Link::value}, visit);
    case ObjectType::string:
    case ObjectType::cdata:
      return;
  }
}

void LuajitHeap::visit_function(const HeapObject& function, const VisitReference& visit) const {
  const Address at = function.address;
  const std::uint64_t upvalues = field<std::uint8_t>(at, layout_.fn_nupvalues);
  visit({at, ref(at, layout_.fn_env), Link::environment});
  if (function.type == ObjectType::c_function)
    return visit_slots(luajit_.c_upvalue_slot(at, 0), upvalues, {at, 0, Link::upvalue}, visit);
  visit({at, ref(at, layout_.fn_pc) - layout_.pt_size, Link::prototype});
  std::uint32_t index = 0;
  visit_elements(memory_, at + layout_.fn_uvptr, layout_.ref_size, upvalues, [&](std::span<const std::byte> upvalue) {
    visit({at, load_ref(layout_, upvalue, 0), Link::upvalue, index++});
    return true;
  });
}

void LuajitHeap::visit_userdata(Address userdata, const VisitReference& visit) const {
  if (const Address metatable = ref(userdata, layout_.tab_metatable); metatable != 0)
    visit({userdata, metatable, Link::metatable});
  visit({userdata, ref(userdata, layout_.udata_env), Link::environment});
  if (field<std::uint8_t>(userdata, layout_.udata_udtype) != buffer_fields::udtype) return;
  // lj_buf.h, SBufExt: L, cowref, r (8 bytes), dict_str, dict_mt.
  const Address buffer = userdata + layout_.udata_size, cowref = buffer + buffer_fields::L + layout_.ref_size;
  const Address dictionaries = cowref + layout_.ref_size + 8;
  const bool has_cowref = (ref(buffer, buffer_fields::L) & buffer_fields::copy_on_write) != 0;
  const std::array<Address, 3> values = {has_cowref ? ref(cowref, 0) : 0, ref(dictionaries, 0),
                                         ref(dictionaries, layout_.ref_size)};
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) visit({userdata, values[i], Link::user_value, i});
  }
}

// lj_obj.h, proto_kgc: collectable constants are before k, the first one next to it.
void LuajitHeap::visit_prototype(Address proto, const VisitReference& visit) const {
  constexpr std::uint32_t most = 1 << 16;  // operand D has 16 bits
  visit({proto, ref(proto, layout_.pt_chunkname), Link::constant});
  const std::uint32_t count = std::min(field<std::uint32_t>(proto, layout_.pt_sizekgc), most);
  const Address k = ref(proto, layout_.pt_k);
  std::vector<Address> constants;
  visit_elements(memory_, k - std::uint64_t{count} * layout_.ref_size, layout_.ref_size, count,
                 [&](std::span<const std::byte> constant) {
                   constants.push_back(load_ref(layout_, constant, 0));
                   return true;
                 });
  std::ranges::reverse(constants);
  std::uint32_t nested = 0, others = 0;
  for (const Address constant : constants) {
    const bool is_proto = field<std::uint8_t>(constant, layout_.pt_gct) == luajit::gct_proto;
    visit({proto, constant, is_proto ? Link::nested : Link::constant, is_proto ? nested++ : others++});
  }
  if (const Address trace = trace_at(field<std::uint16_t>(proto, layout_.pt_trace)); trace != 0)
    visit({proto, trace, Link::trace});
}

LuajitHeap::TraceTable LuajitHeap::trace_table() const {
  if (fields_.G_irbuf == no_field) return {};
  const Address at = G_ + fields_.G_irbuf + fields_.trace_after_irbuf;
  return {field<Address>(at, 0), field<std::uint32_t>(at, jit_fields::sizetrace_after_trace)};
}

Address LuajitHeap::trace_at(std::uint32_t number) const {
  const TraceTable table = trace_table();
  return number != 0 && number < table.size ? ref(table.references, std::uint64_t{number} * layout_.ref_size) : 0;
}

// lj_gc.c, gc_traverse_trace. A flushed trace has no number.
void LuajitHeap::visit_trace(Address trace, const VisitReference& visit) const {
  // lj_ir.h, in all known releases: opcodes (in 2.0 one lower), types whose constants fill the next
  // instruction, too (none in 2.0), and where constants end (REF_TRUE).
  constexpr std::uint8_t type_bits = 0x1f;
  const int kgc = kgc_opcode(layout_), knull = kgc + 3;
  constexpr std::uint32_t constants_end = ir_bias - 3;
  constexpr std::uint32_t wide_types = 0x605fd8, wide_types_gc32 = 0x604208;
  if (field<std::uint16_t>(trace, layout_.T_traceno) == 0) return;
  const std::uint32_t wide = layout_.is_20  ? 0
                             : layout_.gc64 ? wide_types | (fields_.aligned_strings ? 1 : 0)
                                            : wide_types_gc32;
  const auto ir = field<Address>(trace, layout_.T_ir);
  const std::uint32_t first = field<std::uint32_t>(trace, layout_.T_nk);
  if (first < constants_end) {
    bool is_payload = false, is_object = false;
    std::uint32_t index = 0;
    // lj_ir.h, IRIns: the constant or its operands, type, opcode.
    visit_elements(memory_, ir + slot * first, slot, constants_end - first, [&](std::span<const std::byte> bytes) {
      const auto opcode = load<std::uint8_t>(bytes, 5);
      if (is_payload) {
        if (is_object && layout_.gc64) visit({trace, load<Address>(bytes, 0), Link::constant, index++});
        is_payload = false;
        return true;
      }
      is_object = opcode == kgc;
      if (is_object && !layout_.gc64) visit({trace, load<std::uint32_t>(bytes, 0), Link::constant, index++});
      is_payload = ((wide >> (load<std::uint8_t>(bytes, 4) & type_bits)) & 1) != 0 && opcode != knull;
      return true;
    });
  }
  for (const Offset other : {layout_.T_link, layout_.T_nextroot, layout_.T_nextside}) {
    if (const Address linked = trace_at(field<std::uint16_t>(trace, other)); linked != 0)
      visit({trace, linked, Link::trace});
  }
  visit({trace, ref(trace, layout_.T_startpt), Link::prototype});
}

// lj_gc.c, gc_traverse_frames: the end of what the frames from `base` on may use. With 32-bit
// references a frame's function is in half a slot, and no value.
Address LuajitHeap::stack_end(Address L, Address base, const VisitReference& visit) const {
  Address end = 0;
  LuajitWalker walker(memory_, layout_, L, {}, {base, 0, {}});
  if (!walker.open(base)) return end;
  while (!walker.at_end()) {
    LuajitWalker::Slot frame;
    if (!walker.read_slot(walker.frame(), frame)) break;
    if (frame.is_function) {
      const std::optional<LuajitFunction> function = read_function(memory_, layout_, G_, frame.function);
      if (!layout_.gc64)
        visit({L, frame.function, Link::slot,
               static_cast<std::uint32_t>((walker.frame() - ref(L, layout_.L_stack)) / slot)});
      if (function && function->proto != 0)
        end = std::max(end, walker.frame() + slot * (1 + field<std::uint8_t>(function->proto, layout_.pt_framesize)));
    }
    const Address outer = walker.outer(walker.frame(), frame);
    if (outer == 0) break;
    walker.go_to(outer);
  }
  return end;
}

// In 2.0 only the C frames tell; the threads that have resumed the one that runs have some, too
// (lj_frame.h; vm_x86.dasc, ->vm_resume and ->ff_coroutine_yield).
bool LuajitHeap::is_running(Address L) const {
  return layout_.is_20 ? field<Address>(L, layout_.L_cframe) != 0 : ref(G_, layout_.G_cur_L) == L;
}

// lj_gc.c, gc_traverse_thread. Before its coroutine calls the collector, the VM sets L->top to the
// end of the frame (curr_topL). In one that runs Lua it is outdated.
void LuajitHeap::visit_thread(Address L, const VisitReference& visit) const {
  const auto [stack, end] = luajit_.stack_of(memory_, L);
  const bool is_running = this->is_running(L);
  Address base = field<Address>(L, layout_.L_base), top = field<Address>(L, layout_.L_top);
  const TraceBase now = read_trace_base(memory_, layout_, G_);
  if (now.L == L && now.base > stack && now.base < end) base = now.base;
  if (is_running || !layout_.gc64) {
    const Address used = stack_end(L, base, visit);
    if (is_running) top = std::max(top, used);
  }
  const std::uint32_t first = layout_.gc64 ? 2 : 1;  // after the thread itself
  top = std::clamp(top, stack, end);
  const std::uint64_t slots = (top - stack) / slot;
  if (slots > first) visit_slots(stack + first * slot, slots - first, {L, 0, Link::slot, first}, visit);
  visit({L, ref(L, layout_.L_env), Link::environment});
}

// lj_gc.c, gc_mark_start and atomic.
void LuajitHeap::visit_roots(const std::function<void(const Root&)>& visit) const {
  using Type = Value::Type;
  constexpr std::array types = {Type::nil,   Type::boolean, Type::boolean,  Type::light_userdata, Type::string,
                                Type::other, Type::thread,  Type::other,    Type::function,       Type::other,
                                Type::cdata, Type::table,   Type::userdata, Type::number};
  // The default files of the io library and, from 2023 on, the table of finalizers follow. What
  // comes after that in older releases is not an object yet.
  constexpr std::size_t last_roots = 3;
  visit({luajit_.main_thread(memory_, G_), Root::Kind::main_thread});
  // A coroutine that runs needs nobody who refers to it.
  std::uint64_t most = 1 << 28;  // twice what a full table of strings has
  if (const Address running = ref(G_, layout_.G_cur_L); running != 0) visit({running, Root::Kind::main_thread});
  if (layout_.is_20) {
    visit_list(luajit_.first_object(memory_, G_), most, [&](Address object, std::uint8_t gct, std::uint8_t) {
      if (gct == luajit::gct_thread && is_running(object)) visit({object, Root::Kind::main_thread});
    });
  }
  if (const std::optional<Value> registry = luajit_.read_value(memory_, luajit_.registry_slot(G_)))
    visit({registry->word, Root::Kind::registry});
  if (const Address thread = luajit_.finalizer_thread(memory_, G_); thread != 0) visit({thread, Root::Kind::fixed});
  const std::size_t names = fields_.metamethods, files = names + types.size();
  for (std::size_t i = 0; i < files + last_roots; ++i) {
    const Address object = ref(G_, layout_.G_gcroot + i * layout_.ref_size);
    ObjectHead head;
    if (object == 0 || (i >= names && !luajit_.read_head(memory_, object, head))) continue;
    if (i < names || i >= files) visit({object, Root::Kind::fixed});
    else visit({object, Root::Kind::metatable, types[i - names]});
  }
  visit_waiting(most, [&](Address object, std::uint8_t, std::uint8_t) { visit({object, Root::Kind::finalizer}); });
  visit_strings(most, [&](Address string, std::uint8_t marked, std::uint32_t) {
    if ((marked & fixed_mark) != 0) visit({string, Root::Kind::fixed});
  });
  // The trace that is being recorded is no object yet.
  if (fields_.G_curtrace != no_field)
    visit_trace(G_ + fields_.G_curtrace, [&](const Reference& reference) { visit({reference.to, Root::Kind::trace}); });
}

}  // namespace luaspy
