#include "attach/live_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

namespace luaspy {

bool LiveMemory::read(Address address, std::span<std::byte> into) const {
  if (into.empty()) return true;
  if (use_file_) return read_through_file(address, into);
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(address), into.size()};
  std::size_t count = 0;
  const system::Failure failure = system::read_memory(pid_, {&local, 1}, {&remote, 1}, count);
  if (failure.not_implemented() || failure.not_permitted()) return read_through_file(address, into);
  return count == into.size();
}

// The kernel fills the ranges in order and stops at the first that it cannot read completely: go on after that one.
void LiveMemory::read_batch(std::span<Request> requests) const {
  constexpr std::size_t most = 1024;   // UIO_MAXIOV (linux/uio.h)
  std::array<iovec, most> local, remote;
  while (!requests.empty()) {
    const std::size_t count = std::min(most, requests.size());
    for (std::size_t i = 0; i < count; ++i) {
      local[i] = {requests[i].into.data(), requests[i].into.size()};
      remote[i] = {reinterpret_cast<void*>(requests[i].address), requests[i].into.size()};
    }
    std::size_t bytes = 0;
    system::Failure failure{0};
    if (!use_file_) failure = system::read_memory(pid_, {local.data(), count}, {remote.data(), count}, bytes);
    if (use_file_ || failure.not_implemented() || failure.not_permitted()) {
      for (Request& request : requests) request.done = read_through_file(request.address, request.into);
      return;
    }
    std::size_t filled = 0;
    while (filled < count && bytes >= requests[filled].into.size()) {
      bytes -= requests[filled].into.size();
      requests[filled++].done = true;
    }
    if (filled < count) requests[filled++].done = false;
    requests = requests.subspan(filled);
  }
}

bool LiveMemory::read_through_file(Address address, std::span<std::byte> into) const {
  const std::lock_guard lock(file_lock_);
  for (const bool again : {false, true}) {
    if (!file_ || again) file_ = system::open_file("/proc/" + std::to_string(pid_) + "/mem", O_RDONLY);
    if (!file_) return false;
    use_file_ = true;
    bool is_gone = false;
    if (system::read_at(file_, address, into, &is_gone)) return true;
    if (!is_gone) return false;   // else the process has executed another program
  }
  return false;
}

}  // namespace luaspy
