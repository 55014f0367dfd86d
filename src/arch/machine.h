#pragma once
// A processor, as values: its registers, what they are used for, and how its code is read. The rest
// of luaspy gets a Machine and does not know any register by name, so a saved stop of one processor
// can be replayed on another. Each processor has a folder here.

#include <cstdint>
#include <string_view>

#include "arch/machine_code.h"

namespace luaspy {

struct Machine {
  static constexpr std::uint8_t no_register = 0xff;
  static constexpr std::size_t most_callee_saved = 11, most_user_words = 34;  // AArch64's

  std::string_view name;      // as in uname(2) and in saved stops: "x86_64"
  std::string_view title;     // for people: "x86-64"
  std::uint16_t elf_machine;  // e_machine (ELF gABI 4.1, chapter 4)

  // By number (base/registers.h): pc, sp, and the processor's own.
  std::span<const std::string_view> register_names;
  // The number of each register that DWARF numbers: in call frame information, and in libunwind.
  std::span<const std::uint8_t> by_dwarf;
  std::uint8_t dwarf_return_address;  // which of those call frame information uses for return addresses

  // The ABI's rules for calls. callee_saved: the registers that a called function preserves, without
  // sp; at most most_callee_saved.
  std::span<const std::uint8_t> callee_saved;
  std::size_t frame_pointer_place;              // which of callee_saved may be the frame pointer
  std::array<std::uint8_t, 4> first_arguments;  // the registers of a function's first arguments
  std::uint8_t result;                          // the register of a function's result
  // The register in which a call leaves the return address; a function that calls others has to save it.
  // no_register: a call pushes the return address, and the return takes it off the stack again.
  std::uint8_t link_register;
  std::size_t red_zone;  // bytes below sp that a function may use

  // The sizes that a kernel's pages may have, bytes, ascending; all are multiples of smallest_page. Which
  // one it is, is no fact of the processor. A live target has the pages of the kernel that luaspy runs
  // on: system::page_size(). A core file has those of the kernel that wrote it: CoreFile::page_bytes().
  // What is read of a process's heaps and resident memory says it: ResidentMemory::page_bytes.
  std::span<const std::uint32_t> page_sizes;

  // LuaJIT's interpreter ("Fixed register assignments for the interpreter" in its vm_*.dasc).
  struct Luajit {
    std::uint8_t base;      // BASE
    std::uint8_t c_base;    // BASE around some calls
    std::uint8_t pc;        // PC
    std::uint8_t dispatch;  // DISPATCH
  } luajit;

  // How the kernel passes registers to luaspy. Needed only for the processor that luaspy runs on.
  struct Kernel {
    // The register in each word of user_regs_struct (sys/user.h): ptrace(2)'s NT_PRSTATUS, and
    // pr_reg in core files. At most most_user_words.
    std::span<const std::uint8_t> user_words;
    // The word with the number of the system call that the thread is in or returns from. If it is
    // negative, the thread was stopped by an interrupt instead.
    std::size_t system_call_word = 0;
    std::uint8_t result = no_register;  // of a system call
    std::array<std::uint8_t, 6> arguments{};
    // Set to pc by the instruction that makes a system call.
    std::uint8_t after_system_call = no_register;
    // perf_event_open(2), sample_regs_user: the bit of each register, ascending (asm/perf_regs.h).
    struct Perf {
      std::uint8_t bit, number;
    };
    std::span<const Perf> perf;
  } kernel;

  MachineCode code;

  // The size that something says pages have, or the smallest if they cannot have that.
  std::uint64_t page_bytes(std::uint64_t said) const {
    for (const std::uint32_t size : page_sizes) {
      if (size == said) return size;
    }
    return page_sizes.front();
  }
  // How far a return moves sp, which then is the caller's.
  std::size_t bytes_on_return() const { return link_register == no_register ? sizeof(Address) : 0; }
  // The return address of a function whose registers these are. `entry_sp`: sp when it was entered.
  // `saved`: where it has saved the link register, if it has. nullopt: it is not known any more.
  std::optional<Address> return_address(const Registers& registers, Address entry_sp, std::optional<Address> saved,
                                        const Memory& stack) const {
    if (saved || link_register == no_register) return stack.get<Address>(saved.value_or(entry_sp));
    return registers.knows(link_register) ? std::optional(registers[link_register]) : std::nullopt;
  }

  unsigned frame_pointer() const { return callee_saved[frame_pointer_place]; }
  // The number of the register that DWARF calls `number`; no_register if there is none.
  unsigned of_dwarf(std::uint64_t number) const { return number < by_dwarf.size() ? by_dwarf[number] : no_register; }
};

// The processor that this luaspy is built for. Live targets and core files have the same.
const Machine& own_machine();

// The processor with this name (Machine::name); nullptr if luaspy does not know it.
const Machine* find_machine(std::string_view name);

}  // namespace luaspy
