#pragma once
// Steps from frame to frame by libunwind, over a Memory: for what a FrameRow cannot say, and to
// compare with.

#include <memory>
#include <vector>

#include "unwind/frame_table.h"
#include "unwind/module.h"

namespace luaspy {

// Where the tables of .eh_frame_hdr say that functions start, unsorted. Empty if there are none, or
// none that can be read.
std::vector<Address> table_starts(const Module& module);

class LibunwindCursor {
 public:
  LibunwindCursor(const Modules& modules, const Machine& machine);
  ~LibunwindCursor();

  // The function [start, end) that has call frame information for `address`; false if there is
  // none.
  bool find(Address address, Address& start, Address& end) const;

  // The caller of `from`, whose information is to be looked up at `lookup`. Once it has told a
  // caller it goes on from there, whatever `from` and `lookup` are, until leave().
  Stepped step(const NativeFrame& from, Address lookup, const Memory& stack, Registers& caller);
  bool goes_on() const { return goes_on_; }
  void leave() { goes_on_ = false; }

  // Modules were unloaded.
  void forget();

 private:
  struct Space;  // libunwind's address space, its cursor, and what its callbacks need
  std::unique_ptr<Space> space_;
  bool goes_on_ = false;
};

}  // namespace luaspy
