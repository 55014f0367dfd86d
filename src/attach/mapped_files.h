#pragma once
// The constant parts of a process's images, read from their files: reading them from its memory
// would make pages resident in it. Memory is read only where luaspy cannot open the file (a library
// that was replaced, unless luaspy is root).

#include "attach/live_memory.h"
#include "base/address_space.h"

namespace luaspy {

class MappedFiles : public Memory {
 public:
  // `space` has to outlive it.
  MappedFiles(pid_t pid, const AddressSpace& space) : pid_(pid), space_(space), memory_(pid) {}

  // The range must lie within one mapping of a file; what is mapped beyond the file's end reads as
  // zeros. False if neither the file nor the memory can be read.
  bool read(Address address, std::span<std::byte> into) const override;

 private:
  pid_t pid_;
  const AddressSpace& space_;
  LiveMemory memory_;
  mutable const Mapping* mapping_ = nullptr;  // the mapping that file_ belongs to
  mutable FileDescriptor file_;
};

}  // namespace luaspy
