#pragma once
// What machine code tells about functions and calls. Pure functions of code bytes, and of memory where one is given.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/registers.h"

namespace luaspy {

// The instruction before a return address.
struct CallSite {
  enum class Kind { none, direct, indirect } kind = Kind::none;
  Address target = 0;  // of a direct call
};

// How far sp has moved since a function was entered, and where the function has saved callee-saved
// registers, and the link register if there is one.
struct FrameShape {
  std::int64_t depth = 0;  // bytes from sp up to where sp was when the function was entered
  // The frame pointer points this many bytes below that; sp may move freely.
  std::optional<std::int64_t> frame_pointer;
  struct Saved {
    unsigned number;     // of the register
    std::int64_t below;  // its slot is this many bytes below that
  };
  std::vector<Saved> saved;
};

// What a function has read: `value`, of so many bytes.
struct Load {
  Address at = 0;
  std::uint8_t bytes = 0;
  std::uint64_t value = 0;
};

// The functions of one processor. The defaults find nothing.
struct MachineCode {
  using Code = std::span<const std::byte>;
  static constexpr std::size_t most_call_bytes = 8, most_plt_bytes = 32;

  std::size_t alignment = 1;  // of every instruction, in bytes

  // `before`: the `call_bytes` bytes (at most most_call_bytes) up to `return_address`. Data may look
  // like a call.
  std::size_t call_bytes = 0;
  CallSite (*call_before)(Address return_address, Code before) = [](Address, Code) { return CallSite{}; };

  // The target of the direct call at the start of `code`, which is at `address`; nullopt if there is
  // no direct call.
  std::optional<Address> (*direct_call_at)(Address address, Code code) = [](Address, Code) {
    return std::optional<Address>();
  };

  // The same for a jump to a fixed place, as at the end of a function that ends with a call.
  std::optional<Address> (*direct_jump_at)(Address address, Code code) = [](Address, Code) {
    return std::optional<Address>();
  };

  // `entry`: the `plt_bytes` bytes (at most most_plt_bytes) at `address`. If that is an entry of a
  // procedure linkage table, returns the address of the word that holds the jump's destination;
  // otherwise nullopt.
  std::size_t plt_bytes = 0;
  std::optional<Address> (*plt_slot)(Address address, Code entry) = [](Address, Code) {
    return std::optional<Address>();
  };

  // The shape at offset `at` of a function's code, found by reading the instructions before it in
  // order and along their branches. nullopt if an instruction cannot be read, or sp moves in a way
  // that cannot be followed.
  std::optional<FrameShape> (*shape_of_frame)(Code code, std::size_t at) = [](Code, std::size_t) {
    return std::optional<FrameShape>();
  };

  // Whether the function that continues at `code`, after a call in it has returned, never returns
  // itself: it goes straight to the end of the thread (exit(2), as in clone's assembly in glibc and
  // musl) or to an instruction that no program can execute, with at most one call before that
  // (_start, the assembly at which fiber libraries start their stacks). Such a frame is outermost,
  // whatever is above it on the stack.
  bool (*ends_here)(Code code) = [](Code) { return false; };

  // Whether `code` is what a signal handler returns to (rt_sigreturn(2)).
  static constexpr std::size_t most_signal_return_bytes = 9;
  bool (*returns_from_signal)(Code code) = [](Code) { return false; };

  // The depth (FrameShape) at offset `after_call`, which is right after a call, if what leads there from the
  // start of its function is straight and short and calls nothing else, and nothing branches to it: a loop
  // that begins after the call does, too. A function starts at the start of `code`, or where what is before
  // it does not go on and does not branch to it.
  std::optional<std::int64_t> (*depth_of_straight_code)(Code code, std::size_t after_call) = [](Code, std::size_t) {
    return std::optional<std::int64_t>();
  };

  // What the function at `function`, whose bytes `code` begins with, reads of `memory` until it returns, in order, if
  // it is called with this argument. Empty if it does anything but read, or cannot be followed.
  std::vector<Load> (*loads)(Code code, Address function, Address argument, const Memory& memory) =
      [](Code, Address, Address, const Memory&) { return std::vector<Load>(); };

  // By register: how often `code` adds `addend` (1 to 127) to it, or stores the sum in it.
  std::array<int, Registers::most> (*additions)(Code code, unsigned addend) = [](Code, unsigned) {
    return std::array<int, Registers::most>{};
  };
};

}  // namespace luaspy
