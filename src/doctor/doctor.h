#pragma once
// luaspy doctor: what a bug report needs to know about a process, without private data: no
// arguments, no environment, no names or values of its Lua program, no contents of its memory. Only
// a saved stop has such contents, and only if the user asked for it.

#include "base/result.h"
#include "luastate/why_not.h"
#include "sampling/session.h"

namespace luaspy {

struct DoctorOptions {
  TargetOptions target;
  std::string output;  // "" or "-": standard output
  std::string save;    // a file for a saved stop of a thread; "": none
};

Result<int> doctor(const DoctorOptions& options);

// Parts of the report, each a few lines of text (doctor_lua.cpp).
std::string detection_text(const StackReader& reader);
std::string states_text(const Memory& memory, const StackReader& reader);
std::string trials_text(const std::vector<RowTrial>& trials, const std::vector<const Lua*>& chosen);
std::string functions_text(const StackReader& reader);
// "lua5.4+0x17920": the module that contains the address and the address within that module's file;
// otherwise the kind of memory.
std::string address_text(const StackReader& reader, Address address);

}  // namespace luaspy
