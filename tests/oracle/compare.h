#pragma once
// Shared by both oracles: what they count and print, and how they read their own memory.

#include <setjmp.h>  // of POSIX, as its signals are
#include <signal.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/memory.h"

// Reads this process like another one: a bad address does not crash it. By its own loads, as calls of the kernel took
// two thirds of an oracle's time.
class OwnMemory : public luaspy::Memory {
 public:
  OwnMemory() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (is_reading_ == 0) std::signal(signal, SIG_DFL);  // a fault of the test: the instruction is tried again
      else siglongjmp(fault_, 1);
    };
    action.sa_flags = SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS}) sigaction(signal, &action, nullptr);
  }

  bool read(luaspy::Address address, std::span<std::byte> into) const override {
    if (sigsetjmp(fault_, 0) != 0) {
      is_reading_ = 0;
      return false;
    }
    is_reading_ = 1;
    std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
    is_reading_ = 0;
    return true;
  }

 private:
  static inline sigjmp_buf fault_;
  static inline volatile std::sig_atomic_t is_reading_ = 0;
};

struct Count {
  long frames = 0, instructions = 0, differ = 0;
};
inline Count count;
inline bool planted = false;  // differences are expected, and not printed

// `line`: the first line of the function that is compared.
inline void expect_at(const char* what, std::string_view expected, std::string_view got, int line, int pc) {
  if (expected == got) return;
  ++count.differ;
  if (planted || count.differ > 40) return;
  std::printf("%s: Lua says '%.*s', luaspy '%.*s' (function at line %d, pc %d)\n", what,
              static_cast<int>(expected.size()), expected.data(), static_cast<int>(got.size()), got.data(), line, pc);
}

inline void expect_at(const char* what, int expected, int got, int line, int pc) {
  expect_at(what, std::to_string(expected), std::to_string(got), line, pc);
}
