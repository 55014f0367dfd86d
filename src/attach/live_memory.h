#pragma once
// The memory of a live process, read with process_vm_readv, or through /proc/PID/mem if that call
// is refused or the process's first thread has ended.

#include <atomic>
#include <mutex>

#include "base/memory.h"
#include "system/calls.h"

namespace luaspy {

// Several threads may read at once.
class LiveMemory : public Memory {
 public:
  explicit LiveMemory(pid_t pid) : pid_(pid) {}

  bool read(Address address, std::span<std::byte> into) const override;
  void read_batch(std::span<Request> requests) const override;

 private:
  std::size_t read_through_file(Address address, std::span<std::byte> into) const;  // how many bytes could be read,
                                                                                    // from the start on

  pid_t pid_;
  mutable FileDescriptor file_;  // /proc/PID/mem, opened when process_vm_readv fails
  mutable std::atomic<bool> use_file_ = false;
  mutable std::mutex file_lock_;
};

}  // namespace luaspy
