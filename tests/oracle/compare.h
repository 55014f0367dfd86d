#pragma once
// Shared by both oracles: what they count and print, and how they read their own memory.

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

// Reads this process like another one, so that a bad address cannot crash it.
class OwnMemory : public luaspy::Memory {
 public:
  bool read(luaspy::Address address, std::span<std::byte> into) const override {
    Request request = {.address = address, .into = into};
    return read_at_once({&request, 1});
  }

  void read_batch(std::span<Request> requests) const override {
    constexpr std::size_t most = 512;
    for (; !requests.empty(); requests = requests.subspan(std::min(most, requests.size()))) {
      const std::span<Request> some = requests.first(std::min(most, requests.size()));
      const bool all_done = read_at_once(some);
      for (Request& request : some) request.done = all_done || read(request.address, request.into);
    }
  }

 private:
  bool read_at_once(std::span<Request> requests) const {
    std::vector<iovec> local, remote;
    ssize_t size = 0;
    for (const Request& request : requests) {
      local.push_back({request.into.data(), request.into.size()});
      remote.push_back({reinterpret_cast<void*>(request.address), request.into.size()});
      size += static_cast<ssize_t>(request.into.size());
    }
    return process_vm_readv(pid_, local.data(), local.size(), remote.data(), remote.size(), 0) == size;
  }

  pid_t pid_ = getpid();
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
