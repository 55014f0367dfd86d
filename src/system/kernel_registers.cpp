#include "system/kernel_registers.h"

#include <sys/user.h>

namespace luaspy::system {
namespace {

const Machine::Kernel& kernel() { return own_machine().kernel; }

std::uint64_t word(const user_regs_struct& raw, std::size_t number) {
  return load<std::uint64_t>(std::as_bytes(std::span(&raw, 1)), sizeof(std::uint64_t) * number);
}

std::int64_t system_call_number(const user_regs_struct& raw) {
  return static_cast<std::int64_t>(word(raw, kernel().system_call_word));
}

}  // namespace

Registers registers_of(const user_regs_struct& raw) {
  const std::span<const std::uint8_t> words = kernel().user_words;
  Registers registers;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != Machine::no_register) registers.set(words[i], word(raw, i));
  }
  return registers;
}

bool is_at_system_call(const user_regs_struct& raw) { return system_call_number(raw) >= 0; }

SystemCall system_call_of(const user_regs_struct& raw) {
  const Registers registers = registers_of(raw);
  SystemCall call{system_call_number(raw), static_cast<std::int64_t>(registers[kernel().result])};
  for (std::size_t i = 0; i < call.arguments.size(); ++i) call.arguments[i] = registers[kernel().arguments[i]];
  return call;
}

std::span<const Machine::Kernel::Perf> perf_registers() { return kernel().perf; }

bool is_after_system_call(const Registers& registers) {
  return registers.knows(kernel().after_system_call) && registers[kernel().after_system_call] == registers.pc();
}

bool is_own_machine(std::uint16_t elf_machine) { return own_machine().elf_machine == elf_machine; }
std::string_view own_machine_title() { return own_machine().title; }

}  // namespace luaspy::system
