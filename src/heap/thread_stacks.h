#pragma once
// Where the stacks of a process's threads are, without stopping one.
//
// The first thread's is [stack]. For others the C library has allocated one, and its descriptor of
// the thread is at the upper end. With glibc on x86-64 that is struct pthread (nptl/descr.h; 2.36
// to 2.43): its first and third word are its own address (tcbhead_t, tcb and self), and further on
// it says where the stack is (stackblock, stackblock_size). So the stacks of running threads are
// found, too, and those that glibc keeps of threads that have ended.

#include <span>
#include <vector>

#include "base/address_range.h"
#include "base/resident_memory.h"

namespace luaspy {

// Ascending and disjoint, with their guard pages. `stack_pointers`: those of sleeping threads
// (ThreadState::sp); where a C library is not glibc, these show the stacks, each as the whole
// mapping that it is in. `taken`: memory that is known to be something else, ascending and
// disjoint. Reads up to 64 MiB of what is resident elsewhere.
std::vector<AddressRange> find_thread_stacks(const Memory& memory, const ResidentMemory& resident,
                                             std::span<const Address> stack_pointers,
                                             std::span<const AddressRange> taken);

}  // namespace luaspy
