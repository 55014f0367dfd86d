#pragma once
// Frames of the kernel, as a person reads them: below the function that made the system call, or in which a page
// fault or an interrupt came.

#include <string_view>
#include <vector>

#include "base/frame.h"
#include "base/kernel_chain.h"
#include "stack/kernel_symbols.h"

namespace luaspy {

// Outermost first, like the result. A system call is called what programs call it. What only leads there, from the
// border of the kernel to the system call or to what handles the fault or the interrupt, is Part::vm, unless nothing
// else is left.
Stack kernel_stack(const std::vector<KernelFunction>& functions);
// Of a chain that was recorded. Without symbols it is one frame, "[kernel]".
Stack kernel_stack(const KernelChain& chain, const KernelSymbols& symbols);
// The text of /proc/PID/task/TID/stack: lines "[<0>] NAME+0xOFFSET/0xSIZE [MODULE]", innermost first
// (fs/proc/base.c, proc_pid_stack()). What is no such line is left out.
Stack kernel_stack(std::string_view proc_stack);

}  // namespace luaspy
