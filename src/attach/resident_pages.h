#pragma once
// Which pages of a process are in memory or in swap space. A page that was never written need not
// be copied; reading it would make the kernel add it to the process's page tables.

#include <functional>
#include <vector>

#include "attach/process.h"
#include "base/address_range.h"

namespace luaspy {

// The parts of the mappings that `wanted` chooses, ascending and disjoint. Whole mappings if the
// kernel does not tell.
std::vector<AddressRange> resident_pages(const Process& process, const std::function<bool(const Mapping&)>& wanted);

}  // namespace luaspy
