#pragma once
// Native frames from registers and stack bytes: libunwind over a Memory, with call frame information read from the
// modules' files, and return address scanning where a function has none.

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "frame.h"
#include "unwind/module.h"

namespace luaspy {

// Frames of code that tables do not tell, or not rightly, from whoever knows better.
class FrameRule {
 public:
  virtual ~FrameRule() = default;
  // The registers of the caller of `from`, as far as they are known, pc and sp included; false if it has nothing to say.
  virtual bool step(const NativeFrame& from, const Memory& stack, Registers& caller) const = 0;
};

class Unwinder {
 public:
  explicit Unwinder(const Modules& modules);
  ~Unwinder();

  enum class End {
    root,       // the outermost function was reached (its return address is undefined or 0)
    lost,       // no way on from the last frame: it, and the rest, are missing
    limit,      // more frames than asked for
  };
  // Appends frames to `frames`, innermost first. `stack` has to answer for the thread's stack only. What `rule` says goes first.
  End unwind(const Registers& registers, const Memory& stack, const FrameRule* rule, std::vector<NativeFrame>& frames, std::size_t limit = 4096);

  struct Range {
    Address start = 0, end = 0;  // [start, end); 0, 0 if unknown
  };
  // The function that contains `address`: by call frame information, else by symbols, else by the calls that are made to it
  // and the entries that note_entry() was told.
  Range function(Address address) const;
  // All functions of a module, by the same sources, ascending.
  std::vector<Range> functions(const Module& module) const;
  // Lua knows where its C functions start; code without call frame information does not say.
  // True if it was not known.
  bool note_entry(Address entry);

  // Call after the modules were updated: rows of unloaded modules are forgotten.
  void forget();

 private:
  struct Space;  // libunwind's address space and what its callbacks need
  bool is_entry(const NativeFrame& frame) const;
  bool step_by_code(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  bool step_by_scan(const NativeFrame& from, const Memory& stack, Registers& caller) const;
  Range function_without_tables(const Module& module, Address address) const;
  // How well a word of the stack explains itself as the return address of the call that made `callee`.
  enum class Match { none, weak, strong };
  Match match_return(Address address, const NativeFrame& callee) const;
  bool reaches_through_plt(const Module& caller, Address target, const NativeFrame& callee) const;

  const Modules& modules_;
  std::unique_ptr<Space> space_;
  mutable std::unordered_map<Address, Range> functions_;  // by lookup address
  std::set<Address> entries_;
};

}  // namespace luaspy
