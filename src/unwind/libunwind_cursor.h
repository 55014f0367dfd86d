#pragma once
// Steps from frame to frame with libunwind, over a Memory: for rules that a FrameRow cannot
// express, and for comparison.

#include <memory>
#include <vector>

#include "unwind/frame_row.h"
#include "unwind/module.h"

namespace luaspy {

class LibunwindCursor {
 public:
  LibunwindCursor(const Modules& modules, const Machine& machine);
  ~LibunwindCursor();

  // The function [start, end) that has call frame information for `address`; false if there is
  // none.
  bool find(Address address, Address& start, Address& end) const;

  // The caller of `from`, whose information is looked up at `lookup`. After a step that returned
  // `caller`, the next step continues from that caller, whatever `from` and `lookup` are, until
  // leave().
  Stepped step(const NativeFrame& from, Address lookup, const Memory& stack, Registers& caller);
  bool goes_on() const { return goes_on_; }
  void leave() { goes_on_ = false; }

  // Call after modules were unloaded.
  void forget();

 private:
  struct Space;  // libunwind's address space, its cursor, and what its callbacks need
  std::unique_ptr<Space> space_;
  bool goes_on_ = false;
};

}  // namespace luaspy
