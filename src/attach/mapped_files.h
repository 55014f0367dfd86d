#pragma once
// The constant parts of a process's images, read from their files: reading them from its memory
// would make pages resident in it. Only what is in no file that luaspy can open (a library that was
// replaced, for a user who is not root) is read from there.

#include "attach/live_memory.h"
#include "base/address_space.h"

namespace luaspy {

class MappedFiles : public Memory {
 public:
  // `space` has to outlive it.
  MappedFiles(pid_t pid, const AddressSpace& space) : pid_(pid), space_(space), memory_(pid) {}

  // Within one mapping of a file; what is mapped beyond the file's end is zeros. False where
  // neither file nor memory is to be had.
  bool read(Address address, std::span<std::byte> into) const override;

 private:
  pid_t pid_;
  const AddressSpace& space_;
  LiveMemory memory_;
  mutable const Mapping* mapping_ = nullptr;  // what file_ is of
  mutable FileDescriptor file_;
};

}  // namespace luaspy
