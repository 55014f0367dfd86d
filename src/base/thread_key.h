#pragma once
// Which thread, of all that a recording sees. A thread's number is not enough: it is used again when the thread has
// ended, and the first thread of another program has it after an exec.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace luaspy {

struct ThreadKey {
  std::uint64_t program = 0;  // numbers the programs that luaspy looks at: each process has another one, and a process
                              // has another one after an exec; 0: not known (recordings of older releases)
  int pid = 0, tid = 0;
  std::int64_t started = 0;  // when the thread began, in clock ticks since the machine's start; 0: not known
  auto operator<=>(const ThreadKey&) const = default;

  struct Hash {
    std::size_t operator()(const ThreadKey& key) const {
      std::size_t hash = 0;
      for (const std::uint64_t each : {key.program, static_cast<std::uint64_t>(key.pid),
                                       static_cast<std::uint64_t>(key.tid), static_cast<std::uint64_t>(key.started)})
        hash = hash * 31 + std::hash<std::uint64_t>()(each);
      return hash;
    }
  };
};

}  // namespace luaspy
