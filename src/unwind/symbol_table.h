#pragma once
// The symbols of an ELF file, sorted once. libdwfl finds them (.symtab, the separate debug file by
// build-id or debuglink, .gnu_debugdata, and .dynsym by program headers if there are no section
// headers), but it searches all of them for each address, which takes milliseconds in a program
// with 400,000 symbols.

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
  bool is_local = false;
  // The source file of the object that a local symbol comes from (STT_FILE, without directories as a
  // rule); "" if no symbol says it.
  std::string source;
};

// Finds a debug file that is not installed, by its build-id in hexadecimal; "": there is none. It may
// take seconds. Set it before the first SymbolTable is made; without it nobody is asked.
using DebugFileServer = std::string (*)(const std::string& build_id);
void ask_for_debug_files(DebugFileServer server);

class SymbolTable {
 public:
  // `file`: a descriptor, which stays the caller's. `bias`: the bias of the file's addresses in the
  // target.
  SymbolTable(int file, const std::string& path, Address bias);
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;
  ~SymbolTable();

  // The function that contains an address: the symbol that dwfl_module_addrinfo chooses, if it may
  // be a function. It chooses among the global symbols that contain the address the closest one, or
  // one with a stronger binding; of two at the same place the shorter one, the stronger one, or the
  // first. Without a global symbol it chooses a local one in the same way. Where no symbol with a
  // size contains the address, it chooses the last label before it in the same section.
  std::optional<Symbol> find(Address address) const;

 private:
  struct Entry;
  class Sweep;
  std::vector<Entry> read_entries();
  std::string source_of(std::uint32_t number) const;
  bool same_section(Address a, Address b) const;

  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  // From starts_[i] to starts_[i + 1] the chosen symbol has libdwfl's number symbols_[i]; 0: none.
  std::vector<Address> starts_;
  std::vector<std::uint32_t> symbols_;
  // libdwfl's numbers of the symbols that name source files, ascending: the local symbols after one
  // belong to it.
  std::vector<std::uint32_t> sources_;
  std::uint32_t first_global_ = 0;  // libdwfl's number
};

}  // namespace luaspy
