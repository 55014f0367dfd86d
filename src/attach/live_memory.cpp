#include "attach/live_memory.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attach/proc_files.h"

namespace luaspy {

namespace {

// process_vm_readv reaches the memory through the first thread, which may have ended before the
// others; it then fails with "no such process". Another thread's number would work too, but could
// be reused as soon as that thread ends; an open file keeps referring to this process.
bool asks_for_file(const system::Failure& failure) {
  return failure.not_implemented() || failure.not_permitted() || failure.no_such_process();
}

}  // namespace

bool LiveMemory::read(Address address, std::span<std::byte> into) const {
  if (into.empty()) return true;
  if (use_file_) return read_through_file(address, into) == into.size();
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(address), into.size()};
  std::size_t count = 0;
  const system::Failure failure = system::read_memory(pid_, {&local, 1}, {&remote, 1}, count);
  if (asks_for_file(failure)) return read_through_file(address, into) == into.size();
  return count == into.size();
}

// The kernel fills the ranges in order and stops at the first that it cannot read completely, of
// which it has filled the pages before the unreadable one (process_vm_rw_core(),
// mm/process_vm_access.c; process_vm_readv(2) says otherwise). So the next call continues after
// that range.
void LiveMemory::read_batch(std::span<Request> requests) const {
  constexpr std::size_t most = 1024;  // UIO_MAXIOV (linux/uio.h)
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
    if (use_file_ || asks_for_file(failure)) {
      for (Request& request : requests) {
        request.filled = read_through_file(request.address, request.into);
        request.done = request.filled == request.into.size();
      }
      return;
    }
    std::size_t filled = 0;
    while (filled < count && bytes >= requests[filled].into.size()) {
      bytes -= requests[filled].into.size();
      requests[filled++].done = true;
    }
    if (filled < count) {
      requests[filled].done = false;
      requests[filled++].filled = bytes;
    }
    requests = requests.subspan(filled);
  }
}

std::size_t LiveMemory::read_through_file(Address address, std::span<std::byte> into) const {
  const std::lock_guard lock(file_lock_);
  for (const bool again : {false, true}) {
    if (!file_ || again)
      file_ = system::open_file(fmt::format("/proc/{}/task/{}/mem", pid_, living_thread(pid_)), O_RDONLY);
    if (!file_) return 0;
    use_file_ = true;
    bool is_gone = false;
    const std::size_t count = system::read_some_at(file_, address, into, is_gone);
    if (!is_gone) return count;  // otherwise the process has executed another program
  }
  return 0;
}

}  // namespace luaspy
