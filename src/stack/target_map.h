#pragma once
// What is mapped into a target, and which Luas and native functions are in it.

#include <string>
#include <vector>

#include "base/mapped.h"
#include "luastate/detect.h"
#include "stack/native_code.h"

namespace luaspy {

class TargetMap {
 public:
  // `mapped` and `memory` have to outlive it.
  TargetMap(const Mapped& mapped, const Memory& memory);

  // To be done in this order, as space() may be read by another thread: it changes in take() only.
  AddressSpace look() const { return mapped_.address_space(); }
  bool take(AddressSpace space);  // is there code that was not there?
  bool find_luas();               // after that: are there other Luas than before?
  void find_functions();          // after that

  // Some of these frames may be where no mapping was: is_due() says when to look again.
  void note(const std::vector<NativeFrame>& natives);
  // Call between ticks. A target that maps and unmaps all the time must not make luaspy read its
  // mappings at every tick: the more often nothing new was found, the longer the pause.
  bool is_due();

  const AddressSpace& space() const { return space_; }
  const Modules& modules() const { return modules_; }
  const Detector& detector() const { return detector_; }
  const Unwinder& unwinder() const { return unwinder_; }
  Unwinder& unwinder() { return unwinder_; }
  const NativeCode& functions() const { return functions_; }

 private:
  const Mapped& mapped_;
  AddressSpace space_;
  Detector detector_;
  Modules modules_;
  Unwinder unwinder_;
  NativeCode functions_;
  bool stale_ = false;
  int looks_to_skip_ = 0, looks_in_vain_ = 0;
};

}  // namespace luaspy
