#pragma once
// luaspy doctor: what a bug report needs to know of a process, and nothing that its owner would not
// show: no arguments, no environment, no names or values of its Lua program, no contents of its
// memory. The only file with such contents is a saved stop, and only if it was asked for.

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

// Parts of the report, each some lines of text (doctor_lua.cpp).
std::string detection_text(const StackReader& reader);
std::string states_text(const Memory& memory, const StackReader& reader);
std::string trials_text(const std::vector<RowTrial>& trials, const std::vector<Dialect>& chosen);
std::string functions_text(const StackReader& reader);
// "lua5.4+0x17920": by the module that has the address, and where it is in that module's file; else
// what kind of memory it is in.
std::string address_text(const StackReader& reader, Address address);

}  // namespace luaspy
