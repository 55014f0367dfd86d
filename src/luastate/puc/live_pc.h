#pragma once
// The bytecode pc of the innermost Lua function. 5.1, 5.4 and 5.5 keep it in a local variable of
// luaV_execute and write it to CallInfo only now and then, so the saved one is stale in up to half
// of the samples. The local lives in a callee-saved register, or in a slot of luaV_execute's frame
// where the compiler does not optimise. Which one is learned: at every luaV_execute that is waiting
// for a callee the saved pc is exact, and the place that equals it there is the one. In the same
// way it is learned where luaV_execute has the CallInfo that it works on, which L->ci runs ahead of
// while a call is set up.

#include <array>
#include <unordered_map>

#include "luastate/native_functions.h"
#include "luastate/prototype.h"
#include "luastate/puc/walk_puc.h"

namespace luaspy {

class LivePc {
 public:
  // Learns from a luaV_execute frame that called something: `call`, its innermost Lua call, has an
  // exact saved pc.
  void learn(const NativeFrame& execute, const LuaCall& call, const Memory& stack);
  // Learns from a luaV_execute frame that is at work on a call: a place that is brought up to date
  // for callees only is none.
  void learn_executed(const NativeFrame& execute, Address ci, const Memory& stack);
  // What luaV_execute has where it keeps the CallInfo that it works on (5.2 and later), and the pc;
  // 0 if that is not known for sure.
  Address executed(const NativeFrame& execute, const Memory& stack) const;
  Address sure_pc(const NativeFrame& execute, const Memory& stack) const;

  // The next instruction of `call`, the innermost one of its state, whose luaV_execute frame is
  // `execute`; call.saved_pc where no place is known that holds a pc of this function. `innermost`:
  // the thread is in luaV_execute itself, not in something that it called. `caller`: of the call,
  // nullptr if there is none. `prototype`: of the call, nullptr if it could not be read.
  Address pc(const NativeFrame& execute, bool innermost, const LuaCall& call, const LuaCall* caller,
             const Prototype* prototype, const Memory& stack, const NativeFunctions& functions);

  // A hint for code that was not seen at work yet: pc is the register that machine code adds 4 to
  // most often.
  static std::array<int, register_count> steps_of_four(std::span<const std::byte> code);

 private:
  static constexpr std::size_t frame_slots = 96;  // words below the CFA that are watched
  static constexpr std::size_t places = callee_saved_registers.size() + frame_slots;
  using Scores = std::array<int, places>;
  struct Evidence {
    Scores score{}, executed{};  // of the pc; of the call
    bool hinted = false;
  };
  static void learn(Scores& scores, const std::array<Address, places>& now, Address value, int penalty);
  static Address surest(const Scores& scores, const std::array<Address, places>& now, int needed);
  static bool is_after_new_table(const Prototype& prototype, const LuaCall& call, Address pc);
  static std::array<Address, places> values(const NativeFrame& execute, const Memory& stack);

  std::unordered_map<Address, Evidence> by_function_;  // start of luaV_execute
};

}  // namespace luaspy
