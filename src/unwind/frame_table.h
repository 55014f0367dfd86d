#pragma once
// What call frame information (DWARF 5, 6.4) says at one pc, in a form that leads from a frame to
// its caller in nanoseconds. Registers have luaspy's numbers, not DWARF's.

#include <compare>

#include "arch/machine.h"
#include "base/frame.h"
#include "unwind/elf_headers.h"

namespace luaspy {

// How a step from a frame to its caller ended.
enum class Stepped : std::uint8_t {
  unknown,  // nothing is said of the caller, or it could not be read
  root,     // there is none
  caller,
};

struct FrameRow {
  enum class Cfa : std::uint8_t {
    unknown,  // said in a way that this form has no place for
    offset,   // register + offset
    word,     // the word at register + offset: glibc's signal trampoline, functions that align their stack
    plt,  // as the linkers say it of the entries of a PLT: register + offset, and 8 more from the push in the entry on
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

  static constexpr std::int32_t near = 128;  // bytes: where a function saves registers as a rule; it does so in one
                                             // piece

  Cfa cfa = Cfa::unknown;
  std::uint8_t number = 0;   // of the register that the CFA is relative to
  std::uint8_t pushed = 0;   // plt: bytes from an entry's start up to where it has pushed
  bool interrupted = false;  // a signal handler's return: its caller was not calling
  std::int32_t offset = 0;
  std::int32_t lowest = 0;  // the lowest offset of those at_cfa if all are words between it and the CFA, and at most
                            // `near` below; else 0
  std::array<Slot, Machine::most_callee_saved> saved{};  // of Machine::callee_saved
  Slot return_address{};
  auto operator<=>(const FrameRow&) const = default;

  // The caller's pc, sp and callee-saved registers, from what is known in `from`; sp is the CFA.
  // `unknown` as soon as anything that the row needs cannot be had.
  Stepped step(const Machine& machine, const NativeFrame& from, const Memory& stack, Registers& caller) const;
};

// The call frame information of an ELF file (call_frame.h), read where it is asked for.
class FrameTable {
 public:
  // `file`: its bytes, which have to outlive this. `bias`: what its addresses differ by from the
  // target's.
  FrameTable(std::span<const std::byte> file, Address bias);

  // What is said at `pc`, which is in the function [start, end), in addresses of the target. Its
  // CFA is unknown if that cannot be told.
  FrameRow at(const Machine& machine, Address pc, Address start, Address end) const;

 private:
  FrameTable(std::span<const std::byte> file, const ElfHeaders& headers, Address bias);

  LoadedBytes bytes_;
  Address header_ = 0, bias_;  // of .eh_frame_hdr, as the file has it
  std::uint64_t header_size_ = 0;
};

}  // namespace luaspy
