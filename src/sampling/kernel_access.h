#pragma once
// Whether luaspy can see where threads are in the kernel, and by what names.

#include <memory>
#include <string>
#include <vector>

#include "attach/kernel_log.h"
#include "stack/kernel_symbols.h"

namespace luaspy {

struct KernelAccess {
  std::shared_ptr<const KernelSymbols> symbols;  // nullptr: nothing of the kernel can be seen
  std::shared_ptr<const KernelLogs> logs;        // where threads execute, on each CPU that luaspy may use; or nullptr
  std::vector<std::string> notes;                // what cannot be seen, why, and what helps; sentences
};

// `rate`: of ticks, Hz. `idle`: sleeping threads are looked at, too. Reads the kernel's symbols, which takes some
// 100 ms.
KernelAccess ask_for_kernel(double rate, bool idle);
// For a single look at sleeping threads, whose stacks come with names.
std::shared_ptr<const KernelSymbols> kernel_for_sleeping();

// Why perf_event_open(2) does not record the kernel. `paranoid`: kernel.perf_event_paranoid.
struct KernelRefusal {
  bool denied = false;    // EACCES or EPERM
  bool filtered = false;  // luaspy runs under a seccomp filter
  int paranoid = 0;
  std::string failure;
};
std::string why_no_kernel(const KernelRefusal& refusal);

}  // namespace luaspy
