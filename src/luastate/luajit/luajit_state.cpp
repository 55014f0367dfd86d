#include "luastate/luajit/luajit_state.h"

namespace luaspy {

VmState vm_state_said(const LuajitLayout& layout, const LuajitState& state) {
  // lj_obj.h: ~LJ_VMST_INTERP and so on.
  constexpr VmState stock[] = {VmState::interpreting, VmState::c,          VmState::collecting, VmState::exiting,
                               VmState::recording,    VmState::optimising, VmState::assembling};
  constexpr VmState more[] = {VmState::interpreting, VmState::interpreting, VmState::c,         VmState::c,
                              VmState::collecting,   VmState::exiting,      VmState::recording, VmState::optimising,
                              VmState::assembling};
  const bool more_states = layout.more_vmstates;
  const auto number = static_cast<std::size_t>(~std::int64_t{state.vmstate});
  if (state.vmstate >= 0) return VmState::machine_code;
  return more_states                 ? (number < std::size(more) ? more[number] : VmState::none)
         : number < std::size(stock) ? stock[number]
                                     : VmState::none;
}

}  // namespace luaspy
