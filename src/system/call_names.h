#pragma once
// What a sleeping thread waits in, by the number of its system call.

#include <string>

namespace luaspy {

// "[epoll_wait]"; "[page fault]" for -1 (it waits outside of any system call); "[system call 999]"
// for an unknown one.
std::string system_call_name(long number);

}  // namespace luaspy
