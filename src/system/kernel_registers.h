#pragma once
// Registers as the kernel hands them out, for the processor that luaspy runs on.

#include <array>
#include <cstdint>
#include <string_view>

#include "arch/machine.h"

struct user_regs_struct;  // sys/user.h

namespace luaspy::system {

// From ptrace(2), NT_PRSTATUS, or from a core file.
Registers registers_of(const user_regs_struct& raw);

// The thread is in a system call or returns from one: no interrupt has stopped it.
bool is_at_system_call(const user_regs_struct& raw);

// That call.
struct SystemCall {
  std::int64_t number = -1;  // negative: there is none
  std::int64_t result = 0;
  std::array<std::uint64_t, 6> arguments{};
};
SystemCall system_call_of(const user_regs_struct& raw);

// The registers that perf_event_open(2) can record, in the order in which the kernel writes them.
std::span<const Machine::Kernel::Perf> perf_registers();
// Of such registers: the thread is at the return from a system call.
bool is_after_system_call(const Registers& registers);

bool is_own_machine(std::uint16_t elf_machine);  // e_machine
std::string_view own_machine_title();            // "x86-64"

}  // namespace luaspy::system
