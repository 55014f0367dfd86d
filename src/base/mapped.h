#pragma once
// What a process has in its address space, according to /proc or a core file.

#include <optional>
#include <string>

#include "base/address_space.h"
#include "base/file_descriptor.h"
#include "base/file_version.h"

namespace luaspy {

class Mapped {
 public:
  virtual ~Mapped() = default;
  virtual AddressSpace address_space() const = 0;
  // The parts of `space`, an address_space() of it, that may hold objects of Lua and have contents: no page that
  // the process has never written.
  virtual AddressSpace contents(const AddressSpace& space) const { return space; }
  // The file behind a mapping, opened for reading; empty if it is not available, or has been
  // replaced by another one.
  virtual FileDescriptor open_mapped(const Mapping& mapping) const = 0;
  // That of the file behind a mapping, without opening it; nullopt if it is not known.
  virtual std::optional<FileVersion> file_version(const Mapping&) const { return std::nullopt; }
  // The program's file, as Mapping::path has it, and what the program is called by, without directories, where that
  // is another name.
  struct Program {
    std::string path, name;
  };
  virtual std::optional<Program> program() const { return std::nullopt; }
};

}  // namespace luaspy
