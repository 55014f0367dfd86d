#pragma once
// Native frames from registers and stack bytes: by the call frame information in the modules'
// files, as rows (frame_row.h) or, where rows cannot express it, by libunwind; and by scanning
// for return addresses where a function has no such information.

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "unwind/libunwind_cursor.h"
#include "unwind/module.h"

namespace luaspy {

// Supplies steps for code that tables do not describe, or describe wrongly.
class FrameRule {
 public:
  virtual ~FrameRule() = default;
  // Sets the known registers of the caller of `from`, including pc and sp; false if the rule does
  // not apply.
  virtual bool step(const NativeFrame& from, const Memory& stack, Registers& caller) const = 0;
};

class Unwinder {
 public:
  // What reads call frame information: rows are about twenty times as fast; they must agree with
  // libunwind.
  enum class Source { rows, libunwind };
  // `machine`: the target's; libunwind reads only own_machine()'s frames. It must outlive this, as
  // `modules` must.
  Unwinder(const Modules& modules, const Machine& machine, Source source = Source::rows);

  enum class End {
    // The outermost function was reached: its return address is undefined or 0 or of no code, nothing
    // calls it, or nothing has called what it returns to (which is the last frame then, unless it is the
    // handler of an exception that is being thrown).
    root,
    lost,   // there is no step from the last frame to its caller: that one and the rest are missing
    limit,  // more frames than asked for
  };
  // Appends frames to `frames`, innermost first. `stack` only needs to provide the thread's stack.
  // `rule` has precedence over everything else.
  End unwind(const Registers& registers, const Memory& stack, const FrameRule* rule, std::vector<NativeFrame>& frames,
             std::size_t limit = 4096);

  struct Range {
    Address start = 0, end = 0;  // [start, end); 0, 0 if unknown
  };
  // The function that contains `address`: by call frame information, else by symbols, else by the
  // targets of direct calls and the entries passed to add_entry().
  Range function(Address address) const;
  // All functions of a module, by the same sources, ascending.
  std::vector<Range> functions(const Module& module) const;
  // Adds the start of a function: Lua knows where its C functions start, which code without call
  // frame information does not show. True if the start is new.
  bool add_entry(Address entry);
  const Machine& machine() const { return machine_; }
  const std::set<Address>& entries() const { return entries_; }

  // Call after the modules were updated: rows of unloaded modules are forgotten.
  void forget();

 private:
  // What is known about an address of a frame. There are few rows: many places share one.
  struct Place {
    Address lookup = 0;
    Range function;
    std::uint32_t row = no_row;  // in rows_
    std::uint32_t entries = 0;   // size of entries_ when the function was looked up
    bool known = false;
    // What a return address right after the address is: of a call, of a signal handler, or of nothing
    // that would return there.
    enum class Return { of_call, of_handler, of_none } is_return = Return::of_call;
  };
  static constexpr std::uint32_t unknown_row = 0, no_row = ~0u;  // not expressible as a row; no call frame information
  static constexpr std::size_t first_places = 1024;              // a power of 2
  // A target that makes up addresses must not fill memory: 5 MiB of places, 8 MiB of rows.
  static constexpr std::size_t most_places = 1 << 16, most_rows = 1 << 16;
  const Place& place(Address lookup) const;  // valid until the next call
  Place& slot(Address lookup) const;
  std::uint32_t number_of(const FrameRow& row) const;
  // On the way from the innermost frame outwards.
  struct Way {
    const Memory& stack;
    const FrameRule* rule;
    bool innermost = true;     // the frame to step from is the innermost one
    bool interrupted = false;  // it did not call, although it is not: then its information is that at its pc
    bool guessed = false;      // a frame was found by searching: what does not fit beyond it is a wrong guess, no end
  };
  Stepped step(NativeFrame& frame, Way& way, NativeFrame& next);
  Stepped step_by_tables(const NativeFrame& from, std::uint32_t row, Way& way, Registers& caller);
  bool is_called_by(const NativeFrame& caller) const;
  bool is_entry(Address address) const;
  Place::Return return_at(const Module* module, Address address) const;
  bool begins_function(Address address) const;
  bool begins_stack(const NativeFrame& frame, const Memory& stack) const;
  bool never_returns(Address pc) const;
  bool step_by_code(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  bool step_by_scan(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  Range function_without_tables(const Module& module, Address address) const;
  // How likely it is that a word on the stack is the return address of the call of `callee`.
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
  mutable std::unordered_map<Address, Address> linked_;  // slot of a PLT entry → where it jumps
  std::set<Address> entries_;
};

}  // namespace luaspy
