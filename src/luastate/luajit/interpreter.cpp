#include "luastate/luajit/frame_steps.h"
#include "luastate/luajit/walk_luajit.h"

namespace luaspy {

bool is_base(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc,
             std::uint64_t link) {
  LuajitWalker walker(memory, layout, L, {}, {});
  LuajitWalker::Slot slot;
  LuaCall call;
  if (!walker.open(base) || !walker.read_slot(walker.frame(), slot) || !walker.read_function(slot, call)) return false;
  if (link != 0 && slot.link != link) return false;
  if (pc == 0) return true;
  if (call.is_lua()) return walker.believable_pc(call, pc) != 0;
  // For a C or fast function, PC is its own instruction, or its caller's next one.
  const Address own = read_ref(memory, layout, call.closure + layout.fn_pc).value_or(0);
  return pc == slot.link || pc == own || pc == own + 4;
}

bool read_function_at(const Memory& memory, const LuajitLayout& layout, Address L, Address slot, LuaCall& call) {
  LuajitWalker walker(memory, layout, L, {}, {});
  const std::optional<std::uint64_t> value = memory.get<std::uint64_t>(slot);
  call = {};
  call.func = slot;
  if (!value || !walker.open(slot + 16)) return false;
  LuajitWalker::Slot function;
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

// The link by which the function with `base` returns, if that is in PC: PC has the link until the
// caller continues. Otherwise 0.
std::uint64_t link_of_return(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc) {
  LuajitWalker walker(memory, layout, L, {}, {});
  LuajitWalker::Slot slot;
  if (pc == 0 || !walker.open(base) || !walker.read_slot(walker.frame(), slot)) return 0;
  LuaCall call;
  const bool is_function = walker.read_function(slot, call);
  if (is_function && !call.is_lua()) return 0;  // it runs as long as its function is in the slot
  if (type_of(pc) == frame_lua && (!is_function || pc == slot.link) && leads_outside(memory, layout, L, base, pc))
    return pc;
  // vm_x64.dasc, ->vm_return and ->vm_returnp: PC may also be the link with FRAME_C flipped. A
  // result may already be in the link's slot.
  constexpr std::uint64_t farthest = 1 << 16;
  for (const std::uint64_t link : {pc, pc ^ frame_c}) {
    if (type_of(link) == frame_lua || link > farthest || (is_function && link != slot.link)) continue;
    if (leads_outside(memory, layout, L, base, link)) return link;
  }
  return 0;
}

// Does the link of the frame with `base` lead to another one, or to the stack's bottom?
bool has_link(const Memory& memory, const LuajitLayout& layout, Address L, Address base) {
  LuajitWalker walker(memory, layout, L, {}, {});
  LuajitWalker::Slot slot;
  if (!walker.open(base) || !walker.read_slot(walker.frame(), slot)) return false;
  const Address outer = walker.outer(walker.frame(), slot);
  if (outer == 0) return false;
  walker.go_to(outer);
  return walker.at_end() || leads_outside(memory, layout, L, base, slot.link);
}

}  // namespace

LuajitTop interpreter_top(const LuajitStack& stack, Address base, Address pc, Address saved_pc,
                          std::vector<InlinedFrame>& entering) {
  const auto& [memory, layout, L] = stack;
  const bool linked = has_link(memory, layout, L, base);
  // In a recursion, PC is also in the function that is being called.
  if (linked && is_base(memory, layout, L, base, pc)) return {base, pc, {}};
  if (const std::uint64_t link = link_of_return(memory, layout, L, base, pc)) return {base, 0, {}, link};
  if (!is_base(memory, layout, L, base, 0)) {
    // ->vm_return: while results are copied to below BASE, PC is the base of the C function that
    // was returned to.
    if (is_base(memory, layout, L, pc, 0) && has_link(memory, layout, L, pc)) return {pc, 0, {}};
    return {};
  }
  // A call whose link is not written yet, or already overwritten: the link is PC or SAVE_PC.
  for (const std::uint64_t link : {pc, saved_pc}) {
    if (link == 0 || (linked && (link != pc || type_of(link) != frame_lua)) ||
        !leads_outside(memory, layout, L, base, link))
      continue;
    const auto slot = memory.get<std::uint64_t>(base - (layout.gc64 ? 16 : 8)).value_or(0);
    // In a continuation's frame, its caller's pc is written first.
    const Address at = layout.gc64 ? base - 24 : base - 12;
    const Address continuation_pc = type_of(link) == frame_cont ? read_ref(memory, layout, at).value_or(0) : 0;
    entering.push_back({base - 8, link, layout.gc64 ? object_of(layout, slot, luajit::gct_function) : slot & 0xffffffff,
                        0, continuation_pc});
    return {base, 0, entering};
  }
  // The call that it made is over; L->base may still be that call's.
  return linked ? LuajitTop{base, 0, {}} : LuajitTop{};
}

}  // namespace luaspy
