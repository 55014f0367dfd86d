#include "luastate/puc/walk_puc.h"

#include <algorithm>
#include <array>

#include "base/word_hash.h"
#include "luastate/bytecode.h"

namespace luaspy {
namespace {

constexpr int most_dropped = 2;
constexpr std::int64_t count_limit = 1 << 20;  // LUAI_MAXCCALLS and LUAI_MAXSTACK allow fewer calls than slots:
                                               // 1,000,000
constexpr Address most_slots = 1'100'000;      // LUAI_MAXSTACK, with its error room
constexpr std::uint32_t size_code_limit = 1 << 26;

class Walker {
 public:
  Walker(const Memory& memory, const Memory& objects, const Layout& layout, Address L)
      : memory_(memory), objects_(objects), layout_(layout), L_(L) {}

  bool open() {
    const auto fields = std::span(state_).first(layout_.L_size);
    if (!memory_.read(L_, fields)) return false;
    stack_ = load<Address>(fields, layout_.L_stack);
    stack_last_ = load<Address>(fields, layout_.L_stack_last);
    ci_ = load<Address>(fields, layout_.L_ci);
    base_ci_ = is_array() ? load<Address>(fields, layout_.L_base_ci) : L_ + layout_.L_base_ci;
    constexpr std::uint8_t yielded = 1;  // LUA_YIELD (lua.h)
    has_yielded_ = load<std::uint8_t>(fields, layout_.L_status) == yielded;
    if (layout_.L_savedpc != no_field) live_savedpc_ = load<Address>(fields, layout_.L_savedpc);
    has_hooks_ = memory_.get<std::uint8_t>(L_ + layout_.L_hookmask).value_or(0) != 0;
    base_func_ = memory_.get<Address>(base_ci_ + layout_.ci_func).value_or(stack_);
    relocating_ = base_func_ != stack_;
    stack_bytes_ = stack_bytes();
    return plausible_pointer(ci_) && plausible_pointer(base_ci_) && plausible_pointer(stack_);
  }

  bool is_array() const { return layout_.ci_previous == no_field; }
  Address innermost() const { return ci_; }
  Address base() const { return base_ci_; }
  bool relocating() const { return relocating_; }

  // Touches what read() needs from the stop for the call at `ci`. False if there is none.
  bool prefetch(Address ci, const KnownFunctions& known, ProtoList& protos, Address& func) {
    std::array<std::byte, 128> bytes;
    const auto fields = std::span(bytes).first(layout_.ci_size);
    if (!memory_.read(ci, fields)) return false;
    func = place_now(load<Address>(fields, layout_.ci_func));
    const Address closure = closure_in(func);
    if (closure == 0 || known.has(closure)) return true;
    const std::size_t two_upvalues = 2 * layout_.value_size;  // Names tells iterators apart by them
    memory_.prefetch(closure, layout_.cclosure_upvalue + two_upvalues);
    const Address proto = memory_.get<Address>(closure + layout_.lclosure_p).value_or(0);
    if (!plausible_pointer(proto)) return true;
    memory_.prefetch(proto, layout_.p_size);
    protos.add(proto);
    return true;
  }

  // The next CallInfo outwards; 0 if there is none or the link cannot be trusted.
  Address outer(Address ci) const {
    if (is_array()) return ci > base_ci_ ? ci - layout_.ci_size : 0;
    const Address previous = memory_.get<Address>(ci + layout_.ci_previous).value_or(0);
    return plausible_pointer(previous) ? previous : 0;
  }
  Address inner(Address ci) const {
    if (is_array()) return ci + layout_.ci_size;
    const Address next = memory_.get<Address>(ci + layout_.ci_next).value_or(0);
    return plausible_pointer(next) ? next : 0;
  }

  bool read(Address ci, bool innermost, LuaCall& call) {
    std::array<std::byte, 128> bytes;
    const auto fields = std::span(bytes).first(layout_.ci_size);
    if (!memory_.read(ci, fields)) return false;
    call = {};
    call.ci = ci;
    call.func = place_now(load<Address>(fields, layout_.ci_func));
    read_status(fields, call);
    // ldo.c, lua_yieldk of 5.2 and 5.3: ci->func is set to the slot below the results, and the
    // place of the real function is kept as an offset.
    const bool was_moved = innermost && has_yielded_ && layout_.ci_extra != no_field &&
                           (status_ & layout_.status.lua) == 0;
    if (was_moved) call.func = stack_ + load<Address>(fields, layout_.ci_extra);
    if (!read_function(call)) return false;
    if (layout_.status.lua != 0 && call.is_lua() != ((status_ & layout_.status.lua) != 0)) return false;
    if (layout_.status.c != 0 && call.is_lua() == ((status_ & layout_.status.c) != 0)) return false;
    if (!call.is_lua()) {
      // 5.1 sets CallInfo.tailcalls for Lua functions only (ldo.c, luaD_precall).
      if (layout_.ci_tailcalls != no_field) call.tail = false, call.lost_tail_calls = 0;
      return true;
    }
    call.saved_pc = load<Address>(fields, layout_.ci_savedpc);
    // 5.1 keeps the running function's savedpc in the state. Between luaD_poscall's two stores it
    // is still the callee's.
    if (innermost && call.has_pc(live_savedpc_)) call.saved_pc = live_savedpc_;
    else if (innermost && live_savedpc_ != 0 && is_of_caller(ci, live_savedpc_)) call.saved_pc = call.code;
    // Between a call's set-up and its first instruction, savedpc is the function's entry, or not
    // written yet.
    if (!call.has_pc(call.saved_pc)) {
      if (!innermost && call.saved_pc != call.code) return false;
      call.saved_pc = call.code;
    }
    return true;
  }

  // luaD_precall links a CallInfo before it fills it (ldo.c): for some instructions the innermost
  // one is nonsense or, worse, still describes the call that used it before. A Lua caller at an
  // OP_CALL or OP_TAILCALL shows where the function is. If anything else called it (a metamethod, a
  // hook, a finalizer), there is no reason for doubt.
  bool read_innermost(LuaCall& call) {
    const bool believable = read(ci_, true, call);
    LuaCall caller;
    const Address caller_ci = outer(ci_);
    if (caller_ci == 0 || caller_ci == base_ci_ || relocating_ || !read(caller_ci, false, caller)) return believable;
    // A function called from C is marked fresh by the time it runs. If it is not, either it has not
    // begun, or the CallInfo still belongs to an earlier call. The two cases cannot be
    // distinguished.
    if (believable && call.is_lua() && !call.fresh && !caller.is_lua() && !is_array()) return false;
    if (!caller.has_pc(caller.saved_pc) || caller.inner != LuaCall::Inner::called) return believable;
    const Address func = called_slot(caller);
    if (func == 0) return believable;
    // 5.1 does not show that a hook runs, only that one is set. A function with varargs moves up
    // when it starts (ltm.c, luaT_adjustvarargs).
    const bool may_be_elsewhere = (layout_.status.hooked == 0 && has_hooks_) || (call.is_vararg() && call.func > func);
    if (believable && (call.func == func || may_be_elsewhere)) {
      // A function called by an instruction runs in its caller's luaV_execute. 5.2 and 5.3 mark
      // that last (CIST_REENTRY).
      if (call.func == func && !is_array() && !layout_.recurses_per_call) call.fresh = false;
      return true;
    }
    LuaCall entering;
    entering.ci = ci_;
    entering.func = func;
    if (!read_function(entering)) return believable && may_be_elsewhere;
    entering.saved_pc = entering.code;
    call = entering;
    return true;
  }

  // OP_TAILCALL of 5.1 to 5.3 (lvm.c) makes luaD_precall link a CallInfo, and then moves the Lua
  // function down over its caller. Until L->ci is the caller's again there are two CallInfos for
  // one call. The outer one has some fields of the caller and some of the callee, in an order that
  // the compiler chose. If `call`, the innermost, is in this situation, it takes over what remains
  // from its caller. From 5.4 on, OP_TAILCALL links nothing for a Lua function; for a C function it
  // does, and its caller stays.
  bool replaces_caller(LuaCall& call) {
    const bool links = layout_.tt_size == 4;
    const Address caller_ci = outer(ci_);
    if (!links || !call.is_lua() || caller_ci == 0 || caller_ci == base_ci_ || relocating_) return false;
    LuaCall caller;
    const bool is_whole = read(caller_ci, false, caller);
    if (!caller.is_lua() || caller.inner != LuaCall::Inner::called) return false;
    const bool at_entry = call.saved_pc == call.code;
    // A call cannot come from a function's entry.
    const bool is_callee = at_entry && caller.saved_pc == call.code;
    if (!is_callee) {
      const std::optional<std::uint32_t> instruction = plausible_pointer(caller.saved_pc, 4)
                                                           ? objects_.get<std::uint32_t>(caller.saved_pc - 4)
                                                           : std::nullopt;
      if (!instruction || !is_tail_call(layout_.bytecode, *instruction)) return false;
      // While it is being called, it never runs; its saved pc may belong to the call before. 5.1
      // changes the caller's base first.
      const bool is_called = is_whole && called_slot(caller) == call.func;
      const bool is_moved = at_entry && ((!is_whole && caller.closure == call.closure) || (is_array() && !has_hooks_));
      if (!is_called && !is_moved) return false;
    }
    call.fresh = caller.fresh;
    call.saved_pc = call.code;
    call.tail = true;
    if (layout_.ci_tailcalls != no_field)
      call.lost_tail_calls = std::max(caller.lost_tail_calls + (is_callee ? 0 : 1), 1);
    return true;
  }

  // Did the Lua function that `caller` called enter luaV_execute again? In 5.1 only the caller's
  // instruction shows it.
  bool enters_anew_51(const LuaCall& caller) const {
    if (!caller.is_lua()) return true;
    return !is_call(layout_.bytecode, objects_.get<std::uint32_t>(caller.saved_pc - 4).value_or(0));
  }

  // Was it called by the instruction that `caller` is at?
  bool is_called_by(const LuaCall& caller, const LuaCall& call) const {
    return caller.is_lua() && caller.inner == LuaCall::Inner::called && caller.has_pc(caller.saved_pc) &&
           called_slot(caller) == call.func;
  }

  bool read_function_at(Address slot, LuaCall& call) {
    call.func = slot;
    return read_function(call);
  }

 private:
  // The slot of the function that is called by the instruction that `caller` is at; 0 if that is
  // neither OP_CALL nor OP_TAILCALL.
  Address called_slot(const LuaCall& caller) const {
    const std::optional<std::uint32_t> instruction = objects_.get<std::uint32_t>(caller.saved_pc - 4);
    const std::optional<int> number = instruction ? called_register(layout_.bytecode, *instruction) : std::nullopt;
    const Address base = layout_.ci_base != no_field ? memory_.get<Address>(caller.ci + layout_.ci_base).value_or(0)
                                                     : caller.func + layout_.value_size;
    return number && base != 0 ? base + layout_.value_size * static_cast<Address>(*number) : 0;
  }

  // Is `pc` in the code of the function that called the one at `ci`?
  bool is_of_caller(Address ci, Address pc) {
    LuaCall caller;
    return ci > base_ci_ + layout_.ci_size && read(ci - layout_.ci_size, false, caller) && caller.has_pc(pc);
  }

  // How far above stack_ a CallInfo's function may be. While luaD_reallocstack (ldo.c) moves the
  // stack, L->stack_last belongs to the old block until the new part is nil (5.1 to 5.3), or until
  // all CallInfos are corrected (later). The CallInfo at the bottom of the stack is corrected last.
  Address stack_bytes() const {
    const bool is_above = base_func_ > stack_;  // the old block
    const bool is_old = base_func_ != stack_ && (is_above ? stack_last_ >= base_func_ : stack_last_ < stack_);
    const bool moves_first = layout_.tt_size == 4;
    if (is_old && moves_first) return 0;
    constexpr Address extra_slots = 8;  // EXTRA_STACK (lstate.h), beyond stack_last
    return base_func_ == 0 ? most_stack_bytes()
                           : std::min(stack_last_ - stack_, most_stack_bytes()) + extra_slots * layout_.value_size;
  }

  // While luaD_reallocstack moves the stack, pointers into it are old, new, or (from 5.4.5,
  // LUAI_STRICT_ADDRESS) offsets.
  Address place_now(Address func) {
    // A heap may be at addresses as low as an offset.
    const bool in_stack = func >= stack_ && func - stack_ <= stack_bytes_;
    if (!in_stack && func <= stack_bytes_) {
      relocating_ |= func != 0;
      return stack_ + func;
    }
    if (!in_stack && base_func_ != stack_ && func >= base_func_ && func - base_func_ < most_stack_bytes()) {
      relocating_ = true;
      // 5.1 to 5.3 correct the pointers after the move, so the slot is in the new block already;
      // 5.4.3 and 5.4.4 correct them before.
      if (layout_.tt_size == 4) return func - base_func_ + stack_;
    }
    return func;
  }

  Address most_stack_bytes() const { return most_slots * layout_.value_size; }

  std::uint32_t tag_of(std::span<const std::byte> slot) const {
    return layout_.tt_size == 1 ? load<std::uint8_t>(slot, layout_.value_tt)
                                : load<std::uint32_t>(slot, layout_.value_tt);
  }

  // The closure in a stack slot; 0 if there is none.
  Address closure_in(Address func) const {
    std::array<std::byte, 32> bytes;
    const auto slot = std::span(bytes).first(layout_.value_size);
    if (!plausible_pointer(func) || !memory_.read(func, slot)) return 0;
    const std::uint32_t tag = tag_of(slot);
    const Address closure = load<Address>(slot, 0);
    return (tag == layout_.tag_lclosure || tag == layout_.tag_cclosure) && plausible_pointer(closure) ? closure : 0;
  }

  void read_status(std::span<const std::byte> fields, LuaCall& call) {
    status_ = 0;
    if (layout_.callstatus_size == 1) status_ = load<std::uint8_t>(fields, layout_.ci_callstatus);
    if (layout_.callstatus_size == 2) status_ = load<std::uint16_t>(fields, layout_.ci_callstatus);
    if (layout_.callstatus_size == 4) status_ = load<std::uint32_t>(fields, layout_.ci_callstatus);
    const StatusBits& bits = layout_.status;
    call.tail = (status_ & bits.tail) != 0;
    call.inner = (status_ & bits.finalizer) != 0 ? LuaCall::Inner::finalizer
                 : (status_ & bits.hooked) != 0  ? LuaCall::Inner::hook
                                                 : LuaCall::Inner::called;
    call.fresh = layout_.recurses_per_call || (bits.fresh != 0 && (status_ & bits.fresh) != 0) ||
                 (bits.reentry != 0 && (status_ & bits.reentry) == 0);
    if (layout_.ci_tailcalls != no_field) {
      call.lost_tail_calls = std::max(load<std::int32_t>(fields, layout_.ci_tailcalls), 0);
      call.tail = call.lost_tail_calls > 0;
    }
  }

  bool read_function(LuaCall& call) {
    std::array<std::byte, 32> bytes;
    const auto slot = std::span(bytes).first(layout_.value_size);
    if (!plausible_pointer(call.func) || !memory_.read(call.func, slot)) return false;
    const Address value = load<Address>(slot, 0);
    const std::uint32_t tag = tag_of(slot);
    if (!plausible_pointer(value, 1)) return false;
    if (tag == layout_.tag_light_c) {
      call.entry = call.key = value;
      return true;
    }
    if (tag != layout_.tag_lclosure && tag != layout_.tag_cclosure) return false;
    std::array<std::byte, 48> closure;
    if (!plausible_pointer(value) || !objects_.read(value, std::span(closure).first(layout_.cclosure_f + 8u)))
      return false;
    call.closure = value;
    // Objects carry their tag without the collectable bit (lobject.h, novariant/withvariant).
    if (load<std::uint8_t>(closure, 8) != (tag & 0x3f)) return false;
    const bool is_c = layout_.closure_isC != no_field ? load<std::uint8_t>(closure, layout_.closure_isC) != 0
                                                      : tag == layout_.tag_cclosure;
    if (is_c) {
      call.entry = call.key = load<Address>(closure, layout_.cclosure_f);
      return plausible_pointer(call.entry, 1);
    }
    call.kind = LuaCall::Kind::lua;
    call.proto = load<Address>(closure, layout_.lclosure_p);
    return read_proto(call);
  }

  bool read_proto(LuaCall& call) const {
    std::array<std::byte, 128> proto;
    const auto fields = std::span(proto).first(layout_.p_size);
    if (!plausible_pointer(call.proto) || !objects_.read(call.proto, fields)) return false;
    call.mark = mark_of(layout_, fields);
    if (call.mark == 0) return false;
    call.code = load<Address>(fields, layout_.p_code);
    call.size_code = load<std::uint32_t>(fields, layout_.p_sizecode);
    if (load<std::uint8_t>(fields, layout_.p_is_vararg) != 0) call.kind = LuaCall::Kind::lua_vararg;
    return plausible_pointer(call.code, 4) && call.size_code > 0 && call.size_code < size_code_limit;
  }

  const Memory& memory_;   // of the stop: the state, its CallInfos, its stack
  const Memory& objects_;  // closures, Protos and their code: they do not change while they live
  const Layout& layout_;
  Address L_;
  std::array<std::byte, 256> state_;
  Address stack_ = 0, stack_last_ = 0, ci_ = 0, base_ci_ = 0, base_func_ = 0, stack_bytes_ = 0, live_savedpc_ = 0;
  std::uint32_t status_ = 0;
  bool relocating_ = false, has_hooks_ = false, has_yielded_ = false;
};

// In 5.1, fresh calls can be found only when the callers are known.
void mark_fresh_51(const Walker& walker, LuaWalk& walk) {
  for (std::size_t i = 0; i < walk.calls.size(); ++i) {
    const LuaCall* const caller = walk.caller_of(i);
    if (walk.calls[i].is_lua()) walk.calls[i].fresh = caller == nullptr || walker.enters_anew_51(*caller);
  }
}

// A function that luaV_execute calls by an instruction runs in the same luaV_execute. 5.2 marks
// that (CIST_REENTRY) only after luaD_precall, which may call a hook, or collect garbage and so
// call a finalizer.
void unmark_reentered(const Walker& walker, LuaWalk& walk) {
  for (std::size_t i = 0; i < walk.calls.size(); ++i) {
    LuaCall& call = walk.calls[i];
    const LuaCall* const caller = call.is_lua() && call.fresh ? walk.caller_of(i) : nullptr;
    if (caller != nullptr && walker.is_called_by(*caller, call)) call.fresh = false;
  }
}

// Counts a call that could not be read. The calls on both sides of it did not call each other.
void drop(LuaWalk& walk) {
  ++walk.dropped;
  if (!walk.calls.empty()) walk.calls.back().gap = true;
}

// Appends the outermost calls of a deep stack, from base_ci inwards, up to but without `stop`.
void append_outermost(Walker& walker, Address stop, std::size_t count, LuaWalk& walk) {
  const std::size_t first = walk.calls.size();
  Address ci = walker.inner(walker.base());
  for (std::size_t i = 0; i < count && ci != 0 && ci != stop; ++i, ci = walker.inner(ci)) {
    LuaCall call;
    if (walker.read(ci, false, call)) walk.calls.push_back(call);
    else ++walk.dropped;
  }
  std::reverse(walk.calls.begin() + static_cast<std::ptrdiff_t>(first), walk.calls.end());
}

// The number of calls between `ci` (included) and the base, without the `kept` ones that the walk
// has from the other end.
std::int64_t count_middle(const Walker& walker, Address ci, std::int64_t kept) {
  std::int64_t count = 0;
  for (; ci != 0 && ci != walker.base(); ci = walker.outer(ci)) {
    if (++count > count_limit) return -1;
  }
  return ci == walker.base() ? std::max<std::int64_t>(count - kept, 0) : -1;
}

}  // namespace

// Over the fields that a compiler sets and nothing changes later; without gclist, the
// closure cache and the mark bits.
std::uint64_t mark_of(const Layout& layout, std::span<const std::byte> proto) {
  if (load<std::uint8_t>(proto, 8) != layout.tag_proto) return 0;
  std::uint64_t hash = hash_basis;
  for (const Offset pointer :
       {layout.p_k, layout.p_code, layout.p_lineinfo, layout.p_locvars, layout.p_upvalues, layout.p_source})
    mix(hash, load<Address>(proto, pointer));
  for (const Offset size :
       {layout.p_sizek, layout.p_sizecode, layout.p_sizelineinfo, layout.p_linedefined, layout.p_lastlinedefined}) {
    mix(hash, load<std::uint32_t>(proto, size));
  }
  return hash | 1;
}

void prefetch_puc(const Memory& stopped, const Layout& layout, Address L, const WalkLimits& limits,
                  const KnownFunctions& known, ProtoList& protos) {
  Walker walker(stopped, stopped, layout, L);
  if (!walker.open()) return;
  Address ci = walker.innermost(), func = 0, inner_func = 0;
  std::size_t i = 0;
  for (; ci != 0 && ci != walker.base(); ++i, ci = walker.outer(ci)) {
    if (i > limits.innermost) {  // is only counted
      if (!limits.count_left_out || i > std::size_t{count_limit}) break;
      continue;
    }
    if (!walker.prefetch(ci, known, protos, func)) break;
    // The caller's instruction says where the innermost call's function is: in one of at most 255
    // registers.
    if (i == 0) inner_func = func;
    const Address farthest = Address{layout.value_size} * 256;
    if (i == 1)
      stopped.prefetch(func, inner_func > func && inner_func - func < farthest ? inner_func - func : farthest);
  }
  if ((ci == 0 || ci == walker.base()) && i <= limits.innermost + 1) return;
  ci = walker.inner(walker.base());
  for (i = 0; i < limits.outermost && ci != 0 && walker.prefetch(ci, known, protos, func); ++i) ci = walker.inner(ci);
}

void walk_puc(const Memory& stopped, const Memory& objects, const Layout& layout, Address L, const WalkLimits& limits,
              LuaWalk& walk) {
  walk.clear();
  Walker walker(stopped, objects, layout, L);
  walk.end = LuaWalk::End::broken;
  if (!walker.open()) return;
  Address ci = walker.innermost();
  for (bool innermost = true; ci != walker.base(); ci = walker.outer(ci), innermost = false) {
    if (ci == 0 || walk.dropped > most_dropped) return;
    if (walk.calls.size() == limits.innermost) {
      walk.cut_at = walk.calls.size();
      if (!walker.read(ci, false, walk.cut_caller)) walk.cut_caller = {};
      append_outermost(walker, ci, limits.outermost, walk);
      const auto kept = static_cast<std::int64_t>(walk.calls.size() - walk.cut_at);
      walk.left_out = limits.count_left_out || walker.is_array() ? count_middle(walker, ci, kept) : -1;
      break;
    }
    LuaCall call;
    if (innermost ? walker.read_innermost(call) : walker.read(ci, false, call)) {
      if (innermost && walker.replaces_caller(call)) ci = walker.outer(ci);
      walk.calls.push_back(call);
    } else if (innermost) {
      ++walk.innermost_dropped;
    } else {
      drop(walk);
    }
  }
  walk.relocated = walker.relocating();
  if (walker.is_array()) mark_fresh_51(walker, walk);
  if (layout.status.reentry != 0) unmark_reentered(walker, walk);
  walk.end = LuaWalk::End::complete;
}

bool read_function_at(const Memory& memory, const Layout& layout, Address L, Address slot, LuaCall& call) {
  Walker walker(memory, memory, layout, L);
  call = {};
  return walker.open() && walker.read_function_at(slot, call);
}

}  // namespace luaspy
