#pragma once
// Names of the system calls that a sleeping thread waits in.

#include <string>

namespace luaspy {

// "[epoll_wait]"; "[page fault]" for -1 (the thread waits outside of any system call); "[system
// call 999]" for an unknown one.
std::string system_call_name(long number);

}  // namespace luaspy
