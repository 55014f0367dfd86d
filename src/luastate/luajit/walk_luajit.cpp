#include "luastate/luajit/walk_luajit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "luastate/luajit/frame_steps.h"

namespace luaspy {
namespace {

constexpr int most_dropped = 2;
constexpr std::size_t most_cframes = 256;      // LJ_MAX_XLEVEL, LUAI_MAXCCALLS: C calls nest to 200
constexpr std::int64_t most_frames = 100'000;  // LUAI_MAXSTACK (luaconf.h) is 65,500 slots, and a frame has two or more
constexpr Address cframe_flags = 3;            // CFRAME_RESUME, CFRAME_UNWIND_FF (lj_frame.h)

// Steps from frame to frame and turns them into calls.
class Steps {
 public:
  Steps(LuajitWalker& walker, const LuajitTop& top) : walker_(walker), pc_(top.pc), left_by_(top.left_by) {}

  enum class Outcome { call, no_call, broken };

  // Reads the walker's current frame, then moves on to the next one outside.
  Outcome next(LuaCall& call) {
    Address frame = walker_.frame();
    LuajitWalker::Slot slot;
    if (!walker_.read_slot(frame, slot)) return Outcome::broken;
    const Address owner = walker_.owner();
    Outcome outcome = Outcome::no_call;
    if (left_by_ != 0) {
      slot.link = std::exchange(left_by_, 0);
    } else if (!slot.is_dummy) {
      outcome = read_call(frame, owner, slot, call);
    }
    Address outer = walker_.outer(frame, slot);
    // A function with varargs has two frames: the inner one is shown, the outer one has the link.
    if (slot.type() == frame_vararg && outer != 0) {
      frame = outer;
      if (!walker_.read_slot(frame, slot)) return Outcome::broken;
      outer = walker_.outer(frame, slot);
    }
    if (outer == 0) return Outcome::broken;
    record_link(slot, frame);
    if (outcome == Outcome::call) call.fresh = from_cframe_;
    walker_.go_to(outer);
    return outcome;
  }

 private:
  Outcome read_call(Address frame, Address owner, const LuajitWalker::Slot& slot, LuaCall& call) {
    call = {};
    call.ci = frame;
    call.func = slot.in_memory ? frame - (walker_.gc64() ? 8 : 0) : 0;
    call.owner = owner;
    if (!walker_.read_function(slot, call)) return Outcome::broken;
    if (!call.is_lua()) return Outcome::call;
    const Address pc = walker_.believable_pc(call, from_cframe_ ? walker_.cframe_pc(owner) : pc_);
    call.saved_pc = pc != 0 ? pc : call.code;
    // The instruction that called a Lua function is in its caller's bytecode; otherwise this is not
    // its caller.
    return pc == 0 && is_return_pc_ ? Outcome::broken : Outcome::call;
  }

  // Records what the frame's link says about the caller.
  void record_link(const LuajitWalker::Slot& slot, Address frame) {
    from_cframe_ = walker_.ends_cframe(frame, slot);
    is_return_pc_ = slot.type() == frame_lua;
    pc_ = is_return_pc_ ? slot.link : slot.type() == frame_cont ? walker_.continuation_pc(frame, slot) : 0;
    if (from_cframe_) walker_.leave_cframe();
  }

  LuajitWalker& walker_;
  Address pc_;
  std::uint64_t left_by_;
  bool is_return_pc_ = false, from_cframe_ = false;
};

}  // namespace

void read_cframes(const Memory& memory, const LuajitLayout& layout, Address L, Address low, Address high,
                  std::vector<Address>& cframes) {
  cframes.clear();
  Address cframe = memory.get<Address>(L + layout.L_cframe).value_or(0) & ~cframe_flags;
  while (cframe >= low && cframe < high && cframe % 8 == 0 && cframes.size() < most_cframes) {
    cframes.push_back(cframe);
    const Address previous = memory.get<Address>(cframe + layout.cframe_previous).value_or(0) & ~cframe_flags;
    if (previous <= cframe) break;
    cframe = previous;
  }
}

void walk_luajit(const LuajitStack& stack, std::span<const Address> cframes, const LuajitTop& top,
                 const WalkLimits& limits, LuaWalk& walk) {
  const auto& [memory, layout, L] = stack;
  walk.clear();
  walk.has_owners = true;
  walk.end = LuaWalk::End::broken;
  // lj_api.c, lj_trace.c: lj_vm_cpcall calls a C function without a frame on the Lua stack, except
  // for lua_cpcall, which then makes NRES positive.
  std::vector<Address> owners;
  for (const Address cframe : cframes) {
    if (memory.get<std::int32_t>(cframe + layout.cframe_nres).value_or(0) >= 0) owners.push_back(cframe);
  }
  LuajitWalker walker(memory, layout, L, owners, top);
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
  // vm_x64.dasc, ->vm_call: a C frame is linked before its first Lua frame exists, and until after
  // that has gone. The outermost C frame always has its own Lua frame. So C frames left over at the
  // end are the innermost ones, which have no Lua frame.
  if (const std::size_t spare = walker.unused_cframes(); spare != 0 && spare < owners.size()) {
    walk_luajit(stack, std::span(owners).subspan(spare), top, limits, walk);
    return;
  }
  if (beyond == 0) return;
  walk.cut_at = walk.calls.size();
  const auto kept = static_cast<std::int64_t>(outermost.size());
  std::rotate(outermost.begin(), outermost.begin() + (beyond > kept ? beyond % std::max<std::int64_t>(kept, 1) : 0),
              outermost.end());
  walk.calls.insert(walk.calls.end(), outermost.begin(), outermost.end());
  walk.left_out = beyond - kept;
}

}  // namespace luaspy
