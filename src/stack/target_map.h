#pragma once
// What is mapped into a target, and which Luas and native functions it contains.

#include <string>
#include <vector>

#include "base/mapped.h"
#include "luastate/detect.h"
#include "stack/native_code.h"
#include "unwind/known_symbols.h"

namespace luaspy {

// What is known about files, whichever process maps them. To find a Lua core's functions takes 20 ms; with
// this, the next process of the same program is ready in a fraction of one. One thread at a time may use it.
struct KnownFiles {
  KnownImages images;
  KnownSymbols symbols;
  NativeCode::KnownVmImages vm_images;
};

class TargetMap {
 public:
  // `mapped`, `memory` and `known` must outlive it. The target is one of the processor that luaspy is built
  // for, live or in a core file.
  TargetMap(const Mapped& mapped, const Memory& memory, KnownFiles& known);

  // Call these in this order. Another thread may read space(), which changes only in update(): that
  // takes no time, as somebody who has stopped a thread may be waiting.
  AddressSpace look() const { return mapped_.address_space(); }
  bool has_new_code(const AddressSpace& space) const;
  void update(AddressSpace space);
  bool find_luas();  // if there is new code. true: the set of Luas changed
  bool is_incomplete() const { return detector_.is_incomplete(); }  // find_luas() may find more at the next try
  void find_functions();                                            // after find_luas(), or forget_symbols()
  void forget_symbols() { modules_.forget_symbols(); }

  // The frames of a look. If some are outside of all known mappings, is_due() says when to read the
  // mappings again. It also does so some times before the first look: a program that has just been
  // executed is still loading its libraries.
  void observe(const std::vector<NativeFrame>& natives);
  // Call between ticks. A target that maps and unmaps all the time must not make luaspy read its
  // mappings at every tick: each time that no new code was found, the pause is about twice as long,
  // up to 63 calls.
  bool is_due();

  const Machine& machine() const { return machine_; }
  const AddressSpace& space() const { return space_; }
  // Where to search for objects of Lua: the parts of space() that have contents now.
  AddressSpace contents() const { return mapped_.contents(space_); }
  const Modules& modules() const { return modules_; }
  const Detector& detector() const { return detector_; }
  const Unwinder& unwinder() const { return unwinder_; }
  Unwinder& unwinder() { return unwinder_; }
  const NativeCode& functions() const { return functions_; }

 private:
  const Mapped& mapped_;
  KnownFiles& known_;
  const Machine& machine_ = own_machine();
  AddressSpace space_;
  Detector detector_;
  Modules modules_;
  Unwinder unwinder_;
  NativeCode functions_;
  bool stale_ = false;
  bool looked_at_ = false;
  int looks_to_skip_ = 0, looks_in_vain_ = 0;
};

}  // namespace luaspy
