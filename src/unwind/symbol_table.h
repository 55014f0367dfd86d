#pragma once
// The symbols of an ELF file, sorted once: libdwfl finds them (.symtab, the separate debug file by
// build-id or debuglink, .gnu_debugdata, and .dynsym by program headers where the section headers
// are gone), but looks at each of them for each address, which takes milliseconds where a program
// has 400,000.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.h"

struct Dwfl;
struct Dwfl_Module;

namespace luaspy {

struct Symbol {
  std::string name;
  Address start = 0;  // in the target
};

class SymbolTable {
 public:
  // `file`: a descriptor of it, which stays the caller's. `bias`: of its addresses in the target.
  SymbolTable(int file, const std::string& path, Address bias);
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;
  ~SymbolTable();

  // The function that contains an address: the symbol that dwfl_module_addrinfo chooses, if it may
  // be a function. That is, of the global ones that contain it the closest one, or one that binds
  // stronger; of two at the same place the shorter one, the stronger one, the first; local ones if
  // there is no global one; and where no symbol with a size contains it, the last label before it
  // in the same section.
  std::optional<Symbol> find(Address address) const;

 private:
  struct Entry;
  class Sweep;
  std::vector<Entry> read_entries() const;
  bool same_section(Address a, Address b) const;

  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  // From starts_[i] to starts_[i + 1] the symbol chosen is libdwfl's number symbols_[i]; 0: none.
  std::vector<Address> starts_;
  std::vector<std::uint32_t> symbols_;
};

}  // namespace luaspy
