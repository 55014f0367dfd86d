#pragma once
// The call frame information (DWARF 5, 6.4) at one pc, in a form in which a step from a frame to
// its caller takes nanoseconds. Registers have luaspy's numbers, not DWARF's.

#include <compare>

#include "arch/machine.h"
#include "base/frame.h"

namespace luaspy {

// How a step from a frame to its caller ended.
enum class Stepped : std::uint8_t {
  unknown,  // there is no information about the caller, or it could not be read
  root,     // there is no caller
  caller,
};

struct FrameRow {
  enum class Cfa : std::uint8_t {
    unknown,  // a rule that this form cannot express
    offset,   // register + offset
    word,     // the word at register + offset: glibc's signal trampoline, functions that align their stack
    plt,      // the linkers' rule for PLT entries: register + offset, and 8 more after the push in the entry
  };
  enum class Where : std::uint8_t {
    same,
    undefined,
    at_cfa,       // at CFA + offset
    at_register,  // at register + offset
    in_register,
  };
  struct Slot {
    std::int32_t offset = 0;
    std::uint8_t number = 0;  // of the register
    Where where = Where::same;
    auto operator<=>(const Slot&) const = default;
  };

  static constexpr std::int32_t near = 128;  // bytes below the CFA: registers are usually saved there, in one piece

  Cfa cfa = Cfa::unknown;
  std::uint8_t number = 0;   // of the register that the CFA is relative to
  std::uint8_t pushed = 0;   // plt: bytes from an entry's start to the end of its push
  bool interrupted = false;  // a signal handler's return: its caller was not calling
  std::int32_t offset = 0;
  std::int32_t lowest = 0;  // the lowest offset of the slots at_cfa, if all of these are words between it and the CFA
                            // and it is at most `near` below the CFA; else 0
  std::array<Slot, Machine::most_callee_saved> saved{};  // of Machine::callee_saved
  Slot return_address{};
  auto operator<=>(const FrameRow&) const = default;

  // Sets the caller's pc, sp and callee-saved registers from those known in `from`; sp is the CFA.
  // Returns `unknown` if anything that the row needs is not available.
  Stepped step(const Machine& machine, const NativeFrame& from, const Memory& stack, Registers& caller) const;
};

}  // namespace luaspy
