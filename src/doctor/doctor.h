#pragma once
// luaspy doctor: what a bug report needs to know about a process, without private data: no
// arguments, no environment, no names or values of its Lua program, no contents of its memory. Only
// a saved stop has such contents, and only if the user asked for it.

#include "base/result.h"
#include "sampling/target_options.h"

namespace luaspy {

struct DoctorOptions {
  TargetOptions target;
  std::string output;  // "" or "-": standard output
  bool json = false;
  std::string save;  // a file for a saved stop of a thread; "": none
};

Result<int> doctor(const DoctorOptions& options);

}  // namespace luaspy
