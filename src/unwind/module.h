#pragma once
// An ELF file that is mapped into the target: its bytes on disk (or, for the vdso and for deleted
// files, in memory), its call frame tables and its symbols.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address_space.h"
#include "unwind/frame_table.h"
#include "unwind/known_symbols.h"

namespace luaspy {

class Module {
 public:
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  const std::string& path() const { return path_; }
  std::string_view name() const;  // what to call it: its file's name, without directories, or the program's
  Address bias() const { return bias_; }
  bool executes(Address address) const;
  // Its bytes are those of the mapped file, not a copy of the target's memory.
  bool has_file() const { return copy_.empty(); }
  struct Code {
    Address start = 0, end = 0;
  };
  std::vector<Code> code() const;  // its executable segments, limited to the bytes that the file has

  // Reads the file's bytes for an address of the target; false if the file has none. Data that the
  // program writes has its initial value.
  bool read(Address address, std::span<std::byte> into) const;

  Address entry() const {
    return entry_;
  }  // e_entry: the program's first instruction, or the dynamic linker's; 0 without one

  // PT_GNU_EH_FRAME: the address of .eh_frame_hdr in the target (0 without one), and its size in
  // bytes.
  Address eh_frame_hdr() const { return eh_frame_hdr_; }
  std::size_t eh_frame_hdr_size() const { return eh_frame_hdr_size_; }
  // Its call frame information; nullptr if its bytes are not laid out as in the file.
  const FrameTable* frames() const;
  // Where the information of each function is, in the file's addresses (without bias()).
  const FrameIndex& frame_index() const;
  Address lowest() const { return segments_.front().start; }
  Address end() const { return segments_.back().end; }

  // The function that contains an address, by .symtab, the separate debug file (build-id),
  // .gnu_debugdata or .dynsym. The first call reads all symbols, which takes about 0.5 µs each.
  std::optional<Symbol> symbol(Address address) const;
  void forget_symbols() { symbols_.reset(); }  // the next call reads them again

  // The function of that name that its file exports.
  std::optional<Address> exported_function(std::string_view name) const;

  // The starts of functions that are called directly: the sorted targets of the call instructions
  // in executable segments. For code without call frame information or symbols. Computed once.
  const std::vector<Address>& call_targets(const MachineCode& machine) const;

  using Opener = std::function<int(const Mapping&)>;  // returns a file descriptor that the module then owns; -1 if the
                                                      // file is not available
  // The module whose file is mapped by `mappings` (all of one file, ascending). nullptr if it is
  // not an ELF file.
  // `known`: nullptr, or it must outlive the module.
  static std::unique_ptr<Module> load(const std::vector<Mapping>& mappings, const Opener& opener, const Memory& memory,
                                      KnownSymbols* known = nullptr);

 private:
  friend class Modules;
  struct Segment {
    Address start, end;    // in the target, limited to the bytes that the file has
    std::uint64_t offset;  // of start in bytes_
    bool executable;
  };
  Module() = default;
  bool map_file(int file);
  bool is_what_is_mapped(const Memory& memory, const Mapping& first) const;
  void unmap_file();
  bool copy_from(const Memory& memory, const std::vector<Mapping>& mappings);
  bool read_program_headers(const std::vector<Mapping>& mappings);
  void add_segment(Address start, std::uint64_t size, std::uint64_t offset, std::uint64_t file_offset, bool executable);

  std::string path_;
  std::string called_;  // "": as its file
  Address bias_ = 0;
  std::vector<Segment> segments_;  // PT_LOAD, ascending
  Address entry_ = 0;
  Address eh_frame_hdr_ = 0;
  std::size_t eh_frame_hdr_size_ = 0;
  int file_ = -1;
  void* mapped_ = nullptr;
  std::size_t mapped_size_ = 0;
  std::vector<std::byte> copy_;
  std::vector<Code> missing_;  // code that copy_ lacks: that of a core whose file is not available
  bool by_address_ = false;    // bytes_ is laid out as in memory
  bool is_file_ = true;        // bytes_ is laid out as in the file; may be both
  std::span<const std::byte> bytes_;
  KnownSymbols* known_symbols_ = nullptr;
  mutable std::optional<MovedSymbols> symbols_;
  mutable std::optional<std::vector<Address>> call_targets_;
  mutable std::unique_ptr<FrameTable> frames_;
  mutable std::optional<FrameIndex> own_index_;  // of a copy
};

// All modules of an address space, found by address. A module that stays mapped keeps its object
// across updates.
class Modules {
 public:
  // `known`: nullptr, or it must outlive them.
  Modules(const Memory& memory, Module::Opener opener, KnownSymbols* known = nullptr)
      : memory_(memory), opener_(std::move(opener)), known_symbols_(known) {}

  // Files are opened when an address in them is first asked for.
  void update(const AddressSpace& space);
  void forget_symbols();  // of all of them
  const Module* find(Address address) const;
  const Memory& memory() const { return memory_; }
  // That of any module whose file is there: all are opened. 0: none has it.
  Address exported_function(std::string_view name) const;
  // What the program is called by whose file has this path (Mapped::program()). Call it before find().
  void call(std::string path, std::string name) { program_ = std::move(path), called_ = std::move(name); }
  // Whether there was code at this address at the last update.
  bool executes(Address address) const;
  // Whether there was none: data, or nothing that an address can be of.
  bool cannot_execute(Address address) const;

 private:
  struct Entry {
    Address start, end;
    std::vector<Mapping> mappings;
    std::shared_ptr<Module> module;
    bool loaded = false;
  };
  const Memory& memory_;
  Module::Opener opener_;
  KnownSymbols* known_symbols_;
  std::string program_, called_;
  mutable std::vector<Entry> entries_;  // ascending by start
  AddressSpace space_;
};

}  // namespace luaspy
