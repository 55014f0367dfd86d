#pragma once
// The target's mappings, as in /proc/PID/maps: a value that is replaced as a whole when it has
// become stale.

#include <string>
#include <string_view>
#include <vector>

#include "base/address_range.h"
#include "base/memory.h"

namespace luaspy {

struct Mapping {
  Address start = 0, end = 0;  // [start, end)
  std::uint64_t offset = 0;    // of `start` in the file
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t device = 0, inode = 0;  // inode 0: no file
  std::string path;  // "/usr/bin/lua5.4", "[heap]", "[vdso]", "" for anonymous memory; without " (deleted)"
  bool deleted = false;

  bool contains(Address address) const { return address >= start && address < end; }
  // Private, of no file, and not one that the kernel has given a purpose ([heap], [stack], [vdso]).
  // It has a name if the program gave it one (prctl(2), PR_SET_VMA_ANON_NAME).
  bool is_anonymous() const { return inode == 0 && !shared && (path.empty() || path.starts_with("[anon:")); }
  // May a lua_State and objects of Lua be in it? In memory that the process has written itself. Constants of
  // the program are left out: a table that refers to one there has no hash part (ltable.c, dummynode). Shared
  // memory counts, of files and of none: an allocator may take it (memfd_create(2), /dev/shm). Memory of
  // devices does not: reading it may change the device.
  bool may_hold_objects() const { return readable && writable && (!shared || is_shared_data()); }
  // Shared, and of a file or of shared memory: not of a device, of a driver, or of the kernel's.
  bool is_shared_data() const;
};

class AddressSpace {
 public:
  AddressSpace() = default;
  explicit AddressSpace(std::vector<Mapping> mappings) : mappings_(std::move(mappings)) {}

  // Parses the text of a /proc/PID/maps file. Malformed lines are skipped.
  static AddressSpace parse(std::string_view text);

  const Mapping* find(Address address) const;
  // Can all of it be read and written? False for an empty range.
  bool is_writable(const AddressRange& range) const;
  const std::vector<Mapping>& mappings() const { return mappings_; }
  // Those that may hold objects of Lua, in the order in which a search that ends somewhere goes: private
  // ones first, as there may be much shared memory, and few Luas are in it.
  std::vector<Mapping> searched() const;

 private:
  std::vector<Mapping> mappings_;  // ascending, disjoint
};

}  // namespace luaspy
