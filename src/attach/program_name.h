#pragma once
// What a process's program is called by. A file can have several names: Debian's redis-server is a link to
// redis-check-rdb, and that is what the kernel says runs.

#include <sys/types.h>

#include <string>

namespace luaspy {

// The path that the process was started by, if that leads to the file that it runs: not to a script, whose
// interpreter runs. Else, and if the last part of both is the same, executable_of(). From AT_EXECFN (getauxval(3)),
// which is in the process's memory. Printable.
std::string program_of(pid_t pid);

}  // namespace luaspy
