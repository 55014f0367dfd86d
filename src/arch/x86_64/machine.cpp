#include "arch/x86_64/machine.h"

#include "arch/x86_64/additions.h"
#include "arch/x86_64/calls.h"
#include "arch/x86_64/loads.h"
#include "arch/x86_64/prologue.h"
#include "arch/x86_64/registers.h"
#ifdef __x86_64__
#include <asm/perf_regs.h>
#include <sys/syscall.h>
#include <sys/user.h>
#endif

namespace luaspy::x86_64 {
namespace {

constexpr std::array<std::string_view, register_count> names = {"rip", "rsp", "rax", "rdx", "rcx", "rbx",
                                                                "rsi", "rdi", "rbp", "r8",  "r9",  "r10",
                                                                "r11", "r12", "r13", "r14", "r15"};

// System V x86-64 ABI, figure 3.36.
constexpr std::array<std::uint8_t, register_count> by_dwarf = {rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8,
                                                               r9,  r10, r11, r12, r13, r14, r15, rip};

// sys/user.h, struct user_regs_struct.
constexpr std::uint8_t none = Machine::no_register;
constexpr std::array<std::uint8_t, 27> user_words = {
    r15,  r14,  r13,  r12,  rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi,
    none,                    // orig_rax
    rip,  none, none,        // rip, cs, eflags
    rsp,  none, none, none,  // rsp, ss, fs_base, gs_base
    none, none, none, none   // ds, es, fs, gs
};
constexpr std::size_t orig_rax = 15;

// asm/perf_regs.h, enum perf_event_x86_regs; 9 is eflags, then come segments.
constexpr std::array<Machine::Kernel::Perf, register_count> perf = {{{0, rax},
                                                                     {1, rbx},
                                                                     {2, rcx},
                                                                     {3, rdx},
                                                                     {4, rsi},
                                                                     {5, rdi},
                                                                     {6, rbp},
                                                                     {7, rsp},
                                                                     {8, rip},
                                                                     {16, r8},
                                                                     {17, r9},
                                                                     {18, r10},
                                                                     {19, r11},
                                                                     {20, r12},
                                                                     {21, r13},
                                                                     {22, r14},
                                                                     {23, r15}}};

constexpr std::array<std::uint32_t, 1> page_sizes = {4096};  // Intel SDM vol. 3, 4.2; larger ones are huge pages

constexpr Machine described = {
    .name = "x86_64",
    .title = "x86-64",
    .elf_machine = 62,  // EM_X86_64
    .register_names = names,
    .by_dwarf = by_dwarf,
    .dwarf_return_address = 16,
    .callee_saved = callee_saved_registers,
    .frame_pointer_place = 1,
    .first_arguments = {rdi, rsi, rdx, rcx},  // System V x86-64 ABI, 3.2.3
    .result = rax,                            // 3.2.3
    .link_register = Machine::no_register,    // 3.2.2
    .red_zone = 128,                          // 3.2.2
    .page_sizes = page_sizes,
    .luajit = {.base = rdx, .c_base = rbp, .pc = rbx, .dispatch = r14},  // vm_x64.dasc, vm_x86.dasc
    .kernel =
        {
            .user_words = user_words,
            .system_call_word = orig_rax,  // an interrupt puts a negative number there (arch/x86/entry/entry_64.S)
            .result = rax,                 // System V x86-64 ABI, A.2.1
            .arguments = {rdi, rsi, rdx, r10, r8, r9},
            .after_system_call = rcx,  // Intel SDM vol. 2, SYSCALL
            .perf = perf,
        },
    .code =
        {
            .alignment = 1,
            .call_bytes = longest_call,
            .call_before = call_before,
            .direct_call_at = direct_call_at,
            .direct_jump_at = direct_jump_at,
            .plt_bytes = plt_entry_bytes,
            .plt_slot = plt_slot,
            .shape_of_frame = shape_of_frame,
            .ends_here = ends_here,
            .returns_from_signal = returns_from_signal,
            .depth_of_straight_code = depth_of_straight_code,
            .loads = loads_of,
            .additions = additions,
        },
};
static_assert(longest_call <= MachineCode::most_call_bytes && plt_entry_bytes <= MachineCode::most_plt_bytes);
static_assert(user_words.size() <= Machine::most_user_words && register_count <= Registers::most);

#ifdef __x86_64__
constexpr std::uint8_t at(std::size_t offset) { return user_words[offset / sizeof(std::uint64_t)]; }
using Raw = user_regs_struct;
static_assert(sizeof(Raw) == user_words.size() * sizeof(std::uint64_t));
static_assert(at(offsetof(Raw, rax)) == rax && at(offsetof(Raw, rdx)) == rdx && at(offsetof(Raw, rcx)) == rcx);
static_assert(at(offsetof(Raw, rbx)) == rbx && at(offsetof(Raw, rsi)) == rsi && at(offsetof(Raw, rdi)) == rdi);
static_assert(at(offsetof(Raw, rbp)) == rbp && at(offsetof(Raw, rsp)) == rsp && at(offsetof(Raw, rip)) == rip);
static_assert(at(offsetof(Raw, r8)) == r8 && at(offsetof(Raw, r9)) == r9 && at(offsetof(Raw, r10)) == r10);
static_assert(at(offsetof(Raw, r11)) == r11 && at(offsetof(Raw, r12)) == r12 && at(offsetof(Raw, r13)) == r13);
static_assert(at(offsetof(Raw, r14)) == r14 && at(offsetof(Raw, r15)) == r15);
static_assert(offsetof(Raw, orig_rax) == orig_rax * sizeof(std::uint64_t));
static_assert(perf[0].bit == PERF_REG_X86_AX && perf[1].bit == PERF_REG_X86_BX && perf[2].bit == PERF_REG_X86_CX);
static_assert(perf[3].bit == PERF_REG_X86_DX && perf[4].bit == PERF_REG_X86_SI && perf[5].bit == PERF_REG_X86_DI);
static_assert(perf[6].bit == PERF_REG_X86_BP && perf[7].bit == PERF_REG_X86_SP && perf[8].bit == PERF_REG_X86_IP);
static_assert(perf[9].bit == PERF_REG_X86_R8 && perf[16].bit == PERF_REG_X86_R15);
#endif

}  // namespace

const Machine& machine() { return described; }

}  // namespace luaspy::x86_64
