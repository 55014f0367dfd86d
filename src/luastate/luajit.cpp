#include "luastate/luajit.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "luastate/luajit_prototype.h"
#include "luastate/luajit_tables.h"

namespace luaspy {
namespace {

constexpr int most_dropped = 2;
constexpr std::size_t most_cframes = 256;             // LJ_MAX_XLEVEL, LUAI_MAXCCALLS: C calls nest to 200
constexpr std::int64_t most_frames = 100'000;         // LUAI_MAXSTACK (luaconf.h) is 65,500 slots, and a frame has two or more
constexpr std::uint32_t most_instructions = 1 << 26;  // LJ_MAX_BCINS (lj_def.h)
constexpr Address cframe_flags = 3;                   // CFRAME_RESUME, CFRAME_UNWIND_FF (lj_frame.h)

// lj_frame.h: what the low three bits of a link say.
enum FrameType : std::uint64_t { frame_lua = 0, frame_c = 1, frame_cont = 2, frame_vararg = 3, frame_cp = 5, frame_pcall = 6, frame_pcallh = 7 };
std::uint64_t type_of(std::uint64_t link) { return (link & 3) == 0 ? std::uint64_t{frame_lua} : link & 7; }

// How far below a frame the one outside of it is, by its link.
std::optional<Address> distance_of(const Memory& memory, const LuajitLayout& layout, std::uint64_t link) {
  if (type_of(link) != frame_lua) return link & ~std::uint64_t{7};
  constexpr Address a_of_call = 3;  // BCIns: OP in the lowest byte, then A (lj_bc.h); the instruction before the link is the call
  const std::optional<std::uint8_t> a = plausible_pointer(link, 4) ? memory.get<std::uint8_t>(link - a_of_call) : std::nullopt;
  if (!a) return std::nullopt;
  return 8 * (Address{*a} + (layout.gc64 ? 2 : 1));
}

}  // namespace

bool read_proto_of(const Memory& memory, const LuajitLayout& layout, LuaCall& call) {
  std::array<std::byte, 128> bytes;
  const auto fields = std::span(bytes).first(layout.pt_size);
  if (!plausible_pointer(call.proto) || !memory.read(call.proto, fields)) return false;
  call.is_lua = true;
  call.mark = mark_of(layout, fields);
  call.code = call.proto + layout.pt_size;
  call.size_code = load<std::uint32_t>(fields, layout.pt_sizebc);
  constexpr std::uint8_t is_vararg = 2;  // PROTO_VARARG
  call.is_vararg = (load<std::uint8_t>(fields, layout.pt_flags) & is_vararg) != 0;
  return call.mark != 0 && call.size_code > 0 && call.size_code < most_instructions;
}

namespace {

class Walker {
 public:
  Walker(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> cframes, const LuajitTop& top)
      : memory_(memory), layout_(layout), L_(L), cframes_(cframes), inlined_(top.inlined) {}

  bool open(Address base) {
    std::array<std::byte, 96> bytes;
    const auto fields = std::span(bytes).first(layout_.L_stacksize + 4u);
    if (!memory_.read(L_, fields)) return false;
    G_ = load_ref(layout_, fields, layout_.L_glref);
    stack_ = load_ref(layout_, fields, layout_.L_stack);
    limit_ = stack_ + 8 * std::uint64_t{load<std::uint32_t>(fields, layout_.L_stacksize)};
    bottom_ = stack_ + (layout_.gc64 ? 8 : 0);
    frame_ = base - 8;
    // Of a trace that is being left, the stack is made bigger for what it had inlined (lj_snap.c, lj_snap_restore).
    return plausible_pointer(stack_) && base % 8 == 0 && frame_ >= bottom_ && (frame_ < limit_ || !inlined_.empty());
  }

  bool gc64() const { return layout_.gc64; }
  bool at_end() const { return frame_ <= bottom_; }
  std::size_t unused_cframes() const { return cframes_.size() - next_cframe_; }
  Address frame() const { return frame_; }

  struct Slot {
    Address function = 0, proto = 0;  // proto: only where the function is not known
    std::uint64_t link = 0;
    Address continuation_pc = 0;  // inlined
    bool is_function = false;     // else a dummy (the thread itself), or nothing that can be believed
    bool is_dummy = false;
    bool in_memory = true;  // not inlined
    std::uint64_t type() const { return type_of(link); }
  };

  bool read_slot(Address frame, Slot& slot) {
    slot = {};
    const auto inlined = std::ranges::find(inlined_, frame, &InlinedFrame::frame);
    if (inlined != inlined_.end() && inlined->link != 0) {
      slot = {inlined->function, inlined->proto, inlined->link, inlined->continuation_pc, true, false, false};
      return true;
    }
    if (layout_.gc64) {
      std::array<std::uint64_t, 2> words;
      if (!read_stack(frame - 8, std::as_writable_bytes(std::span(words)))) return false;
      slot.link = words[1];
      slot.function = object_of(layout_, words[0], luajit::gct_function);
      slot.is_dummy = object_of(layout_, words[0], luajit::gct_thread) == L_;
    } else {
      std::array<std::uint32_t, 2> words;
      if (!read_stack(frame, std::as_writable_bytes(std::span(words)))) return false;
      slot.link = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(words[1])});
      if ((words[1] & 3) == frame_lua) slot.link = words[1];  // a pc, not a distance
      // A function that is not called yet has its type there. Any other type is a value's that has overwritten the slot; of a nil that is all
      // that was written.
      constexpr std::uint32_t types = 0xffff0000, function_type = ~std::uint32_t{luajit::gct_function};
      if (words[1] < types || words[1] == function_type) slot.function = words[0];
      slot.is_dummy = words[0] == L_;
    }
    if (inlined != inlined_.end()) slot.function = inlined->function;
    slot.is_function = slot.function != 0 && !slot.is_dummy;
    return true;
  }

  // The frame outside of the one at `frame`; 0 if the link cannot be believed.
  Address outer(Address frame, const Slot& slot) {
    Call& call = calls_[slot.link / 4 % calls_.size()];
    if (call.link != slot.link || slot.link == 0) {
      const std::optional<Address> distance = distance_of(memory_, layout_, slot.link);
      if (!distance) return 0;
      call = {slot.link, *distance};
    }
    const Address result = frame - call.distance;
    return result < frame && result >= bottom_ ? result : 0;
  }

  // The C frame that the frame at hand runs in.
  Address owner() const { return next_cframe_ < cframes_.size() ? cframes_[next_cframe_] : 0; }

  bool ends_cframe(Address frame, const Slot& slot) const {
    if (slot.type() == frame_c || slot.type() == frame_cp) return true;
    constexpr std::uint64_t ffi_callback = 1;  // LJ_CONT_FFI_CALLBACK
    return slot.type() == frame_cont && slot.in_memory && continuation(frame) == ffi_callback;
  }
  void leave_cframe() { ++next_cframe_; }

  std::uint64_t continuation(Address frame) const {
    return layout_.gc64 ? memory_.get<std::uint64_t>(frame - 24).value_or(0) : memory_.get<std::uint32_t>(frame - 8).value_or(0);
  }
  Address continuation_pc(Address frame, const Slot& slot) const {
    if (!slot.in_memory) return slot.continuation_pc;
    return layout_.gc64 ? memory_.get<std::uint64_t>(frame - 16).value_or(0) : memory_.get<std::uint32_t>(frame - 4).value_or(0);
  }
  // SAVE_PC of a C frame, for a Lua function that called something without leaving a pc on the Lua stack (a hook, a finalizer).
  Address cframe_pc(Address cframe) const { return cframe == 0 ? 0 : read_ref(memory_, layout_, cframe + layout_.cframe_PC).value_or(0); }

  // Fills what a LuaCall says of its function.
  bool read_function(const Slot& slot, LuaCall& call) {
    if (!slot.is_function) return false;
    LuaCall& known = functions_[slot.function / 16 % functions_.size()];
    if (slot.function == 0 || known.closure != slot.function) {
      LuaCall read;
      if (!read_unknown(slot, read)) return false;
      known = read;
    }
    const auto [ci, func, owner] = std::tuple(call.ci, call.func, call.owner);
    call = known;
    call.ci = ci, call.func = func, call.owner = owner;
    return true;
  }

  bool read_unknown(const Slot& slot, LuaCall& call) const {
    call.proto = slot.proto;
    call.closure = slot.function;
    if (slot.function == 0) return read_proto_of(memory_, layout_, call);
    std::array<std::byte, 48> bytes;
    const auto fields = std::span(bytes).first(layout_.fn_f + 8u);
    if (!plausible_pointer(slot.function) || !memory_.read(slot.function, fields)) return false;
    if (load<std::uint8_t>(fields, layout_.fn_gct) != luajit::gct_function) return false;
    const Address pc = load_ref(layout_, fields, layout_.fn_pc);
    const auto ffid = load<std::uint8_t>(fields, layout_.fn_ffid);
    if (!plausible_pointer(pc, 4)) return false;
    constexpr std::uint8_t is_lua = 0;
    if (ffid != is_lua) {
      call.entry = load<std::uint64_t>(fields, layout_.fn_f);
      call.key = c_function_key(layout_, G_, pc, call.entry);
      return plausible_pointer(call.entry, 1);
    }
    call.proto = pc - layout_.pt_size;
    return read_proto_of(memory_, layout_, call);
  }

  // A pc of `call`, or 0. lj_debug.c, debug_framepc: after a trace that begins at a return was left, it points behind the trace's copy
  // of its first instruction.
  Address believable_pc(const LuaCall& call, Address pc) const {
    if (pc == 0 || call.has_pc(pc) || pc == call.code) return pc;
    const Address trace = pc - 4 - layout_.T_startins;
    if (!plausible_pointer(trace) || memory_.get<std::uint8_t>(trace + layout_.T_gct) != luajit::gct_trace) return 0;
    const Address start = read_ref(memory_, layout_, trace + layout_.T_startpc).value_or(0);
    return call.has_pc(start + 4) ? start + 4 : 0;
  }

  void go_to(Address frame) { frame_ = frame; }

 private:
  // Deep stacks are read a piece at a time, from the frame asked for downwards.
  bool read_stack(Address address, std::span<std::byte> into) {
    if (address < piece_start_ || address + into.size() > piece_start_ + piece_size_) {
      piece_size_ = 0;
      const Address end = address + into.size();
      const Address start = std::max(end > piece_.size() ? end - piece_.size() : 0, stack_);
      if (start >= end || !memory_.read(start, std::span(piece_).first(end - start))) return memory_.read(address, into);
      piece_start_ = start;
      piece_size_ = end - start;
    }
    std::ranges::copy(std::span(piece_).subspan(address - piece_start_, into.size()), into.begin());
    return true;
  }

  struct Call {
    std::uint64_t link = 0;
    Address distance = 0;
  };

  const Memory& memory_;
  const LuajitLayout& layout_;
  std::array<std::byte, 4096> piece_;
  Address piece_start_ = 0;
  std::size_t piece_size_ = 0;
  std::array<Call, 64> calls_;  // seen before: recursion meets the same ones again and again
  std::array<LuaCall, 16> functions_;
  Address L_, G_ = 0;
  std::span<const Address> cframes_;
  std::span<const InlinedFrame> inlined_;
  Address stack_ = 0, limit_ = 0, bottom_ = 0, frame_ = 0;
  std::size_t next_cframe_ = 0;
};

// Steps from frame to frame and makes calls of them.
class Steps {
 public:
  Steps(Walker& walker, const LuajitTop& top) : walker_(walker), pc_(top.pc), left_by_(top.left_by) {}

  enum class Outcome { call, no_call, broken };

  // The frame that the walker is at, and then on to the next one outside.
  Outcome next(LuaCall& call) {
    Address frame = walker_.frame();
    Walker::Slot slot;
    if (!walker_.read_slot(frame, slot)) return Outcome::broken;
    const Address owner = walker_.owner();
    Outcome outcome = Outcome::no_call;
    if (left_by_ != 0) {
      slot.link = std::exchange(left_by_, 0);
    } else if (!slot.is_dummy) {
      outcome = read_call(frame, owner, slot, call);
    }
    Address outer = walker_.outer(frame, slot);
    // A function with varargs has two frames: what is to be shown is in the inner one, the link in the outer one.
    if (slot.type() == frame_vararg && outer != 0) {
      frame = outer;
      if (!walker_.read_slot(frame, slot)) return Outcome::broken;
      outer = walker_.outer(frame, slot);
    }
    if (outer == 0) return Outcome::broken;
    note_link(slot, frame);
    if (outcome == Outcome::call) call.fresh = from_cframe_;
    walker_.go_to(outer);
    return outcome;
  }

 private:
  Outcome read_call(Address frame, Address owner, const Walker::Slot& slot, LuaCall& call) {
    call = {};
    call.ci = frame;
    call.func = slot.in_memory ? frame - (walker_.gc64() ? 8 : 0) : 0;
    call.owner = owner;
    if (!walker_.read_function(slot, call)) return Outcome::broken;
    if (!call.is_lua) return Outcome::call;
    const Address pc = walker_.believable_pc(call, from_cframe_ ? walker_.cframe_pc(owner) : pc_);
    call.saved_pc = pc != 0 ? pc : call.code;
    // The instruction that a Lua function was called by is in its caller's bytecode, or this is not its caller.
    return pc == 0 && is_return_pc_ ? Outcome::broken : Outcome::call;
  }

  // What the frame's link says of the caller.
  void note_link(const Walker::Slot& slot, Address frame) {
    from_cframe_ = walker_.ends_cframe(frame, slot);
    is_return_pc_ = slot.type() == frame_lua;
    pc_ = is_return_pc_ ? slot.link : slot.type() == frame_cont ? walker_.continuation_pc(frame, slot) : 0;
    if (from_cframe_) walker_.leave_cframe();
  }

  Walker& walker_;
  Address pc_;
  std::uint64_t left_by_;
  bool is_return_pc_ = false, from_cframe_ = false;
};

}  // namespace

void read_cframes(const Memory& memory, const LuajitLayout& layout, Address L, Address low, Address high, std::vector<Address>& cframes) {
  cframes.clear();
  Address cframe = memory.get<Address>(L + layout.L_cframe).value_or(0) & ~cframe_flags;
  while (cframe >= low && cframe < high && cframe % 8 == 0 && cframes.size() < most_cframes) {
    cframes.push_back(cframe);
    const Address previous = memory.get<Address>(cframe + layout.cframe_previous).value_or(0) & ~cframe_flags;
    if (previous <= cframe) break;
    cframe = previous;
  }
}

bool is_base(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc) {
  Walker walker(memory, layout, L, {}, {});
  Walker::Slot slot;
  LuaCall call;
  if (!walker.open(base) || !walker.read_slot(walker.frame(), slot) || !walker.read_function(slot, call)) return false;
  if (pc == 0) return true;
  if (call.is_lua) return walker.believable_pc(call, pc) != 0;
  // A C or fast function has its own instruction in PC, or its caller's next one.
  const Address own = read_ref(memory, layout, call.closure + layout.fn_pc).value_or(0);
  return pc == slot.link || pc == own || pc == own + 4;
}

bool read_function_at(const Memory& memory, const LuajitLayout& layout, Address L, Address slot, LuaCall& call) {
  Walker walker(memory, layout, L, {}, {});
  const std::optional<std::uint64_t> value = memory.get<std::uint64_t>(slot);
  call = {};
  call.func = slot;
  if (!value || !walker.open(slot + 16)) return false;
  Walker::Slot function;
  function.function = object_of(layout, *value, luajit::gct_function);
  function.is_function = function.function != 0;
  return walker.read_function(function, call);
}

namespace {

Address base_outside(const Memory& memory, const LuajitLayout& layout, Address base, std::uint64_t link) {
  const std::optional<Address> distance = distance_of(memory, layout, link);
  return distance && *distance != 0 && *distance < base ? base - *distance : 0;
}

// Does `link` lead from the frame with `base` to another one?
bool leads_outside(const Memory& memory, const LuajitLayout& layout, Address L, Address base, std::uint64_t link) {
  const Address outside = base_outside(memory, layout, base, link);
  return outside != 0 && is_base(memory, layout, L, outside, type_of(link) == frame_lua ? link : 0);
}

// The link that the function with `base` returns by, if PC is that: until its caller goes on, PC is the link. Else 0.
std::uint64_t link_of_return(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc) {
  Walker walker(memory, layout, L, {}, {});
  Walker::Slot slot;
  if (pc == 0 || !walker.open(base) || !walker.read_slot(walker.frame(), slot)) return 0;
  LuaCall call;
  const bool is_function = walker.read_function(slot, call);
  if (is_function && !call.is_lua) return 0;  // it runs as long as its function is there
  if (type_of(pc) == frame_lua && (!is_function || pc == slot.link) && leads_outside(memory, layout, L, base, pc)) return pc;
  // vm_x64.dasc, ->vm_return and ->vm_returnp: PC is also the link with FRAME_C flipped. A result may be in the link's slot by then.
  constexpr std::uint64_t farthest = 1 << 16;
  for (const std::uint64_t link : {pc, pc ^ frame_c}) {
    if (type_of(link) == frame_lua || link > farthest || (is_function && link != slot.link)) continue;
    if (leads_outside(memory, layout, L, base, link)) return link;
  }
  return 0;
}

// Does the link of the frame with `base` lead to another one, or to the stack's bottom?
bool has_link(const Memory& memory, const LuajitLayout& layout, Address L, Address base) {
  Walker walker(memory, layout, L, {}, {});
  Walker::Slot slot;
  if (!walker.open(base) || !walker.read_slot(walker.frame(), slot)) return false;
  const Address outer = walker.outer(walker.frame(), slot);
  if (outer == 0) return false;
  walker.go_to(outer);
  return walker.at_end() || leads_outside(memory, layout, L, base, slot.link);
}

}  // namespace

LuajitTop interpreter_top(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc, Address saved_pc,
                          std::vector<InlinedFrame>& entering) {
  const bool linked = has_link(memory, layout, L, base);
  // In a recursion PC is in the function that is being called, too.
  if (linked && is_base(memory, layout, L, base, pc)) return {base, pc, {}};
  if (const std::uint64_t link = link_of_return(memory, layout, L, base, pc)) return {base, 0, {}, link};
  if (!is_base(memory, layout, L, base, 0)) {
    // ->vm_return: while results are copied to below BASE, PC is the base of the C function that was returned to.
    if (is_base(memory, layout, L, pc, 0) && has_link(memory, layout, L, pc)) return {pc, 0, {}};
    return {};
  }
  // A call whose link is not written yet, or is overwritten already: PC is the link, or SAVE_PC.
  for (const std::uint64_t link : {pc, saved_pc}) {
    if (link == 0 || (linked && (link != pc || type_of(link) != frame_lua)) || !leads_outside(memory, layout, L, base, link)) continue;
    const auto slot = memory.get<std::uint64_t>(base - (layout.gc64 ? 16 : 8)).value_or(0);
    const Address at = layout.gc64 ? base - 24 : base - 12;   // of a continuation's frame: its caller's pc is written first
    const Address continuation_pc = type_of(link) == frame_cont ? read_ref(memory, layout, at).value_or(0) : 0;
    entering.push_back({base - 8, link, layout.gc64 ? object_of(layout, slot, luajit::gct_function) : slot & 0xffffffff, 0, continuation_pc});
    return {base, 0, entering};
  }
  return linked ? LuajitTop{base, 0, {}} : LuajitTop{};  // what it had called is gone, L->base may still be of that
}

Address proto_of(const Memory& memory, const LuajitLayout& layout, Address pc) {
  // lj_bc.h: FUNCF is the first of the headers; 89 up to 2026-07, 96 since (a2ce8114); nothing else is as high as 96 but headers.
  constexpr std::uint32_t most = 1 << 16, chunk = 256;
  if (!plausible_pointer(pc, 4)) return 0;
  std::array<std::uint32_t, chunk> instructions;
  for (std::uint32_t back = 0; back < most; back += chunk) {
    const Address from = pc - 4 * Address{back + chunk - 1};
    if (!memory.read(from, std::as_writable_bytes(std::span(instructions)))) return 0;
    for (std::size_t i = chunk; i-- > 0;) {
      constexpr std::uint32_t lowest_header = 89, highest_header = 103;
      const std::uint32_t opcode = instructions[i] & 0xff;
      if (opcode < lowest_header || opcode > highest_header) continue;
      const Address proto = from + 4 * i - layout.pt_size;
      const std::optional<std::uint32_t> size = memory.get<std::uint32_t>(proto + layout.pt_sizebc);
      if (memory.get<std::uint8_t>(proto + layout.pt_gct) == luajit::gct_proto && size && pc < from + 4 * i + 4 * Address{*size}) return proto;
    }
  }
  return 0;
}

void walk_luajit(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> cframes, const LuajitTop& top, const WalkLimits& limits,
                 LuaWalk& walk) {
  walk.clear();
  walk.has_owners = true;
  walk.end = LuaWalk::End::broken;
  // lj_api.c, lj_trace.c: what lj_vm_cpcall calls is a C function without a frame on the Lua stack, except for lua_cpcall's, which then
  // makes NRES positive.
  std::vector<Address> owners;
  for (const Address cframe : cframes) {
    if (memory.get<std::int32_t>(cframe + layout.cframe_nres).value_or(0) >= 0) owners.push_back(cframe);
  }
  Walker walker(memory, layout, L, owners, top);
  if (!walker.open(top.base)) return;
  Steps steps(walker, top);
  std::vector<LuaCall> outermost;  // the last calls of a deep stack, as a ring
  std::int64_t beyond = 0;
  for (std::int64_t i = 0; !walker.at_end(); ++i) {
    if (i == most_frames) return;
    LuaCall call;
    const Address before = walker.frame();
    const Steps::Outcome outcome = steps.next(call);
    if (outcome == Steps::Outcome::broken) {
      if (i == 0) ++walk.innermost_dropped;
      else ++walk.dropped;
      if (!walk.calls.empty() && beyond == 0) walk.calls.back().gap = true;
      if (walk.dropped > most_dropped || walker.frame() == before) return;
    } else if (outcome == Steps::Outcome::call) {
      if (walk.calls.size() < limits.innermost) {
        walk.calls.push_back(call);
      } else {
        if (beyond == 0) walk.cut_caller = call;
        if (outermost.size() < limits.outermost) outermost.push_back(call);
        else if (limits.outermost != 0) outermost[static_cast<std::size_t>(beyond) % limits.outermost] = call;
        ++beyond;
      }
    }
    if (walker.frame() == before) break;
  }
  walk.end = LuaWalk::End::complete;
  // vm_x64.dasc, ->vm_call: a C frame is linked before its first Lua frame is there, and until after that has gone. The outermost one
  // always has its own; what is left over at the end is missing at the beginning.
  if (const std::size_t spare = walker.unused_cframes(); spare != 0 && spare < owners.size()) {
    walk_luajit(memory, layout, L, std::span(owners).subspan(spare), top, limits, walk);
    return;
  }
  if (beyond == 0) return;
  walk.cut_at = walk.calls.size();
  const auto kept = static_cast<std::int64_t>(outermost.size());
  std::rotate(outermost.begin(), outermost.begin() + (beyond > kept ? beyond % std::max<std::int64_t>(kept, 1) : 0), outermost.end());
  walk.calls.insert(walk.calls.end(), outermost.begin(), outermost.end());
  walk.left_out = beyond - kept;
}

}  // namespace luaspy
