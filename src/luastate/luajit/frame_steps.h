#pragma once
// Steps from frame to frame of a LuaJIT lua_State: slots, links and functions. walk_luajit.h has a
// drawing of them; walk_luajit.cpp walks a whole stack; interpreter.cpp finds out where it begins.
// In a header because a thread may be stopped during the walk.

#include <algorithm>
#include <array>
#include <tuple>

#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/luajit_top.h"

namespace luaspy {

// lj_frame.h: the meaning of the low three bits of a link.
enum FrameType : std::uint64_t {
  frame_lua = 0,
  frame_c = 1,
  frame_cont = 2,
  frame_vararg = 3,
  frame_cp = 5,
  frame_pcall = 6,
  frame_pcallh = 7
};
inline std::uint64_t type_of(std::uint64_t link) { return (link & 3) == 0 ? std::uint64_t{frame_lua} : link & 7; }

// The distance from a frame down to the one outside of it, according to its link.
inline std::optional<Address> distance_of(const Memory& memory, const LuajitLayout& layout, std::uint64_t link) {
  if (type_of(link) != frame_lua) return link & ~std::uint64_t{7};
  constexpr Address a_of_call = 3;  // BCIns: OP in the lowest byte, then A (lj_bc.h); the instruction before the link
                                    // is the call
  const std::optional<std::uint8_t> a = plausible_pointer(link, 4) ? memory.get<std::uint8_t>(link - a_of_call)
                                                                   : std::nullopt;
  if (!a) return std::nullopt;
  return 8 * (Address{*a} + (layout.gc64 ? 2 : 1));
}

class LuajitWalker {
 public:
  LuajitWalker(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> cframes,
               const LuajitTop& top)
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
    // When a trace is left, the stack is made bigger for the functions that it had inlined
    // (lj_snap.c, lj_snap_restore).
    return plausible_pointer(stack_) && base % 8 == 0 && frame_ >= bottom_ && (frame_ < limit_ || !inlined_.empty());
  }

  bool gc64() const { return layout_.gc64; }
  bool at_end() const { return frame_ <= bottom_; }
  std::size_t unused_cframes() const { return cframes_.size() - next_cframe_; }
  Address frame() const { return frame_; }

  struct Slot {
    Address function = 0, proto = 0;  // proto: only if the function is not known
    std::uint64_t link = 0;
    Address continuation_pc = 0;  // of inlined frames
    bool is_function = false;     // false: a dummy (the thread itself), or not trustworthy
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
      // A function that is not called yet has the function type there. Any other type belongs to a
      // value that has overwritten the slot; for a nil, only the type was written.
      constexpr std::uint32_t types = 0xffff0000, function_type = ~std::uint32_t{luajit::gct_function};
      if (words[1] < types || words[1] == function_type) slot.function = words[0];
      slot.is_dummy = words[0] == L_;
    }
    if (inlined != inlined_.end()) slot.function = inlined->function;
    slot.is_function = slot.function != 0 && !slot.is_dummy;
    return true;
  }

  // The frame outside of the one at `frame`; 0 if the link cannot be trusted.
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

  // The C frame that the current frame runs in.
  Address owner() const { return next_cframe_ < cframes_.size() ? cframes_[next_cframe_] : 0; }

  bool ends_cframe(Address frame, const Slot& slot) const {
    if (slot.type() == frame_c || slot.type() == frame_cp) return true;
    constexpr std::uint64_t ffi_callback = 1;  // LJ_CONT_FFI_CALLBACK
    return slot.type() == frame_cont && slot.in_memory && continuation(frame) == ffi_callback;
  }
  void leave_cframe() { ++next_cframe_; }

  std::uint64_t continuation(Address frame) const {
    return layout_.gc64 ? memory_.get<std::uint64_t>(frame - 24).value_or(0)
                        : memory_.get<std::uint32_t>(frame - 8).value_or(0);
  }
  Address continuation_pc(Address frame, const Slot& slot) const {
    if (!slot.in_memory) return slot.continuation_pc;
    return layout_.gc64 ? memory_.get<std::uint64_t>(frame - 16).value_or(0)
                        : memory_.get<std::uint32_t>(frame - 4).value_or(0);
  }
  // SAVE_PC of a C frame. Needed for a Lua function that called something without leaving a pc on
  // the Lua stack (a hook, a finalizer).
  Address cframe_pc(Address cframe) const {
    return cframe == 0 ? 0 : read_ref(memory_, layout_, cframe + layout_.cframe_PC).value_or(0);
  }

  // Fills the fields of a LuaCall that describe its function.
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

  // `pc` if it is one of `call`, or 0. lj_debug.c, debug_framepc: after leaving a trace that begins
  // at a return, pc points behind the trace's copy of its first instruction.
  Address believable_pc(const LuaCall& call, Address pc) const {
    if (pc == 0 || call.has_pc(pc) || pc == call.code) return pc;
    const Address trace = pc - 4 - layout_.T_startins;
    if (!plausible_pointer(trace) || memory_.get<std::uint8_t>(trace + layout_.T_gct) != luajit::gct_trace) return 0;
    const Address start = read_ref(memory_, layout_, trace + layout_.T_startpc).value_or(0);
    return call.has_pc(start + 4) ? start + 4 : 0;
  }

  void go_to(Address frame) { frame_ = frame; }

 private:
  // Deep stacks are read in pieces, each downwards from the requested frame.
  bool read_stack(Address address, std::span<std::byte> into) {
    if (address < piece_start_ || address + into.size() > piece_start_ + piece_size_) {
      piece_size_ = 0;
      const Address end = address + into.size();
      const Address start = std::max(end > piece_.size() ? end - piece_.size() : 0, stack_);
      if (start >= end || !memory_.read(start, std::span(piece_).first(end - start)))
        return memory_.read(address, into);
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
  std::array<Call, 64> calls_;  // seen before: recursion repeats the same ones
  std::array<LuaCall, 16> functions_;
  Address L_, G_ = 0;
  std::span<const Address> cframes_;
  std::span<const InlinedFrame> inlined_;
  Address stack_ = 0, limit_ = 0, bottom_ = 0, frame_ = 0;
  std::size_t next_cframe_ = 0;
};

}  // namespace luaspy
