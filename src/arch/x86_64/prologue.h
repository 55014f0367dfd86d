#pragma once
// What a function's machine code says about its stack frame, for functions without call frame
// information: how far sp has moved since the function was entered, and which callee-saved
// registers it has pushed where. x86-64.

#include <optional>
#include <vector>

#include "base/registers.h"

namespace luaspy {

struct FrameShape {
  std::int64_t depth = 0;                     // bytes from sp up to the return address
  std::optional<std::int64_t> frame_pointer;  // rbp points this many bytes below the return address; sp may move freely
  struct Saved {
    unsigned number;     // Register
    std::int64_t below;  // its slot is this many bytes below the return address
  };
  std::vector<Saved> saved;
};

// The shape at offset `at` of a function's code, found by reading the instructions before it in
// order and along their branches. nullopt if an instruction cannot be read, or sp moves in a way
// that cannot be followed.
std::optional<FrameShape> shape_of_frame(std::span<const std::byte> code, std::size_t at);

// Whether the function that continues at `code`, after a call in it has returned, never returns
// itself: it goes straight to the end of the thread (exit(2), as in clone's assembly in glibc and
// musl) or to an instruction that no program can execute, with at most one call before that
// (_start, the assembly at which fiber libraries start their stacks). Such a frame is outermost,
// whatever is above it on the stack.
bool ends_here(std::span<const std::byte> code);

}  // namespace luaspy
