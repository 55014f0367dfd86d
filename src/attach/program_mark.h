#pragma once
// Tells whether a process has executed another program: the path of the program is the same if an interpreter executes
// itself with another script.

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/memory.h"

namespace luaspy {

// The 16 random bytes that the kernel gives to each program at its exec (getauxval(3), AT_RANDOM), and where. They lie
// in memory that the program can write: one that changes them counts as another program, which costs time and a row in
// a report. Some runtimes erase them after their start (Go).
struct ProgramMark {
  Address at = 0;
  std::array<std::byte, 16> bytes{};

  // Whether `later` is of another program.
  bool differs(const ProgramMark& later) const {
    return later.at != at || (later.bytes != bytes && later.bytes != std::array<std::byte, 16>());
  }
};

// nullopt: the process has ended, is just executing another program, or luaspy may not read it.
std::optional<ProgramMark> program_mark(pid_t pid);

// Where these bytes are, by the file /proc/PID/auxv (proc(5)): pairs of words, up to AT_NULL. 0: it does not say.
Address random_bytes_in(std::string_view auxv);

}  // namespace luaspy
