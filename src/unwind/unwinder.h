#pragma once
// Native frames from registers and stack bytes: by call frame information of the modules' files, as
// rows (frame_table.h) or, where those cannot say it, by libunwind; and return address scanning
// where a function has none.

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "unwind/libunwind_cursor.h"
#include "unwind/module.h"

namespace luaspy {

// Frames of code that tables do not tell, or not rightly, from whoever knows better.
class FrameRule {
 public:
  virtual ~FrameRule() = default;
  // The registers of the caller of `from`, as far as they are known, pc and sp included; false if
  // it has nothing to say.
  virtual bool step(const NativeFrame& from, const Memory& stack, Registers& caller) const = 0;
};

class Unwinder {
 public:
  // What reads call frame information: rows are some twenty times as fast, libunwind is what they
  // have to agree with.
  enum class Source { rows, libunwind };
  // `machine`: the target's; libunwind reads only own_machine()'s frames. It must outlive this, as
  // `modules` must.
  Unwinder(const Modules& modules, const Machine& machine, Source source = Source::rows);

  enum class End {
    root,   // the outermost function was reached (its return address is undefined or 0)
    lost,   // no way on from the last frame: it, and the rest, are missing
    limit,  // more frames than asked for
  };
  // Appends frames to `frames`, innermost first. `stack` has to answer for the thread's stack only.
  // What `rule` says goes first.
  End unwind(const Registers& registers, const Memory& stack, const FrameRule* rule, std::vector<NativeFrame>& frames,
             std::size_t limit = 4096);

  struct Range {
    Address start = 0, end = 0;  // [start, end); 0, 0 if unknown
  };
  // The function that contains `address`: by call frame information, else by symbols, else by the
  // calls that are made to it and the entries that note_entry() was told.
  Range function(Address address) const;
  // All functions of a module, by the same sources, ascending.
  std::vector<Range> functions(const Module& module) const;
  // Lua knows where its C functions start; code without call frame information does not say.
  // True if it was not known.
  bool note_entry(Address entry);
  const Machine& machine() const { return machine_; }
  const std::set<Address>& entries() const { return entries_; }

  // Call after the modules were updated: rows of unloaded modules are forgotten.
  void forget();

 private:
  // What is known of an address that frames were at. Rows are few, and many places have the same.
  struct Place {
    Address lookup = 0;
    Range function;
    std::uint32_t row = no_row;  // in rows_
    std::uint32_t entries = 0;   // how many of entries_ there were when the function was looked for
    bool known = false;
  };
  static constexpr std::uint32_t unknown_row = 0, no_row = ~0u;  // not said in a row; no call frame information at all
  static constexpr std::size_t first_places = 1024;              // a power of 2
  // A target that makes up addresses must not fill memory: 5 MiB of places, 8 MiB of rows.
  static constexpr std::size_t most_places = 1 << 16, most_rows = 1 << 16;
  const Place& place(Address lookup) const;  // until the next call
  Place& slot(Address lookup) const;
  std::uint32_t number_of(const FrameRow& row) const;
  Stepped step(NativeFrame& frame, bool innermost, const FrameRule* rule, bool& interrupted, const Memory& stack,
               NativeFrame& next);
  Stepped step_by_tables(const NativeFrame& from, std::uint32_t row, bool& interrupted, const Memory& stack,
                         Registers& caller);
  bool is_entry(Address address) const;
  bool never_returns(Address pc) const;
  bool step_by_code(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  bool step_by_scan(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  Range function_without_tables(const Module& module, Address address) const;
  // How well a word of the stack explains itself as the return address of the call that made
  // `callee`.
  enum class Match { none, weak, strong };
  Match match_return(Address address, const NativeFrame& callee) const;
  bool reaches_through_plt(const Module& caller, Address target, const NativeFrame& callee) const;

  const Modules& modules_;
  const Machine& machine_;
  const Source source_;
  LibunwindCursor libunwind_;
  mutable std::vector<Place> places_;  // a hash table by lookup
  mutable std::size_t place_count_ = 0;
  mutable std::vector<FrameRow> rows_;
  mutable std::map<FrameRow, std::uint32_t> row_numbers_;
  mutable std::unordered_map<Address, Address> linked_;  // what a PLT entry jumps through → where
  std::set<Address> entries_;
};

}  // namespace luaspy
