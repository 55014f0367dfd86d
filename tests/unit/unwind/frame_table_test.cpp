// Rows of call frame information: from files made by hand, from invalid bytes, and from this
// program itself, where libunwind must agree.

#include "unwind/frame_table.h"

#include <elf.h>
#include <fcntl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <random>
#include <sstream>

#include "accuracy/agreement.h"
#include "arch/x86_64/machine.h"
#include "arch/x86_64/registers.h"
#include "attach/live_memory.h"
#include "unit/unwind/file_with_frames.h"

namespace luaspy::frame_table_test {
namespace {

using namespace x86_64;

using Cfa = FrameRow::Cfa;
using Where = FrameRow::Where;
using Slot = FrameRow::Slot;

constexpr Address bias = 0x400000, function = 0x800, function_size = 0x100;

// With one function, whose information has `instructions`.
std::vector<std::byte> make_file(const Bytes& instructions, bool signal = false) {
  return file_with_frames(EM_X86_64, signal ? x86_64_signal_rules : x86_64_rules,
                          {{function, function_size, instructions}});
}

FrameRow row_at(const std::vector<std::byte>& file, Address offset) {
  return FrameTable(file, bias)
      .at(machine(), bias + function + offset, bias + function, bias + function + function_size);
}

FrameRow row_of(const Bytes& instructions, Address offset = 0) { return row_at(make_file(instructions), offset); }

NativeFrame frame_at(Address pc, Address sp) {
  NativeFrame frame;
  frame.pc = frame.lookup = pc;
  frame.sp = sp;
  for (unsigned number = 0; number < register_count; ++number) frame.registers.set(number, 0xa000 + number);
  frame.registers.set(rsp, sp);
  frame.registers.set(rip, pc);
  return frame;
}

}  // namespace

TEST_CASE("rows of what compilers write", "[unit]") {
  // push %rbp (1 byte); mov %rsp,%rbp (3); push %rbx; ...; leave; ret; and what follows the ret
  const Bytes code = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x83, 3, 0x50, 0x0a, 0x0c, 7, 8, 0x41, 0x0b};
  const FrameRow entry = row_of(code), pushed = row_of(code, 1), framed = row_of(code, 4), saved = row_of(code, 5);
  const FrameRow leaving = row_of(code, 21), after = row_of(code, 22);
  CHECK(entry.cfa == Cfa::offset);
  CHECK((entry.number == rsp && entry.offset == 8 && entry.lowest == -8));
  CHECK(entry.return_address == Slot{-8, 0, Where::at_cfa});
  CHECK(std::ranges::all_of(entry.saved, [](const Slot& slot) { return slot.where == Where::same; }));
  CHECK((pushed.number == rsp && pushed.offset == 16));
  CHECK(pushed.saved[1] == Slot{-16, 0, Where::at_cfa});
  CHECK((framed.number == rbp && framed.offset == 16));
  CHECK(saved.saved[0] == Slot{-24, 0, Where::at_cfa});
  CHECK(saved.lowest == -24);
  CHECK((leaving.number == rsp && leaving.offset == 8));
  CHECK(after == saved);
  CHECK(row_of(code, function_size).cfa == Cfa::unknown);
  CHECK_FALSE(saved.interrupted);
}

TEST_CASE("rows of what assembly says", "[unit]") {
  CHECK(row_of({0x07, 16}).return_address.where == Where::undefined);
  CHECK(row_of({0x09, 16, 1}).return_address == Slot{0, rdx, Where::in_register});
  CHECK(row_of({0x10, 12, 2, 0x77, 40}).saved[2] == Slot{40, rsp, Where::at_register});  // __restore_rt: DW_OP_breg7
  const FrameRow word = row_of({0x0f, 3, 0x76, 0x78, 0x06});                             // DW_OP_breg6 -8, DW_OP_deref
  CHECK((word.cfa == Cfa::word && word.number == rbp && word.offset == -8));
  CHECK(row_at(make_file({}, true), 0).interrupted);
  const FrameRow plt = row_of({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  CHECK((plt.cfa == Cfa::plt && plt.number == rsp && plt.offset == 8 && plt.pushed == 11));
  // Rules that a row cannot express: a constant, a sum of two registers, a register that does not
  // exist, an offset beyond 2 GiB, a computed value.
  CHECK(row_of({0x0f, 1, 0x35}).cfa == Cfa::unknown);
  CHECK(row_of({0x0f, 5, 0x77, 8, 0x76, 0, 0x22}).cfa == Cfa::unknown);
  CHECK(row_of({0x0c, 40, 8}).cfa == Cfa::unknown);
  CHECK(row_of({0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}).cfa == Cfa::unknown);
  CHECK(row_of({0x14, 3, 1}).cfa == Cfa::unknown);
}

// A reader that allocates memory for all named registers would need gigabytes for the last ones.
TEST_CASE("call frame information that names what is not there, or goes on and on", "[unit]") {
  const FrameRow plain = row_of({});
  CHECK(row_of({0x05, 0xff, 0xff, 0xff, 0xff, 0x0f, 2}) == plain);  // register 2^32 - 1 is not one that is kept
  CHECK(row_of({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}) == plain);
  CHECK(row_of({0x09, 3, 0xff, 0xff, 0xff, 0xff, 0x0f}).cfa == Cfa::unknown);  // rbx is in that register
  CHECK(row_of({0x0b}).cfa == Cfa::unknown);                                   // restores what was not remembered
  CHECK(row_of({0x0a, 0x0e, 16, 0x0b}) == plain);
  CHECK(row_of(Bytes(20, 0x0a)).cfa == Cfa::unknown);  // remembers, and remembers
  CHECK(row_of(Bytes(1000, 0x00)) == plain);
  CHECK(row_of({0x0f, 0xff, 0xff, 0xff, 0x7f}).cfa == Cfa::unknown);  // an expression longer than the file
  CHECK(row_of({0x3a}).cfa == Cfa::unknown);                          // not an instruction
}

TEST_CASE("a step by a row", "[unit]") {
  const OneStack stack({1, 2, 3, 4, 5, 6, 7, 8});
  Registers caller;
  SECTION("words right below the CFA") {
    const NativeFrame from = frame_at(bias + function, OneStack::start);
    CHECK(row_of({0x0e, 64, 0x83, 2, 0x86, 3, 0x8f, 8}).step(machine(), from, stack, caller) == Stepped::caller);
    CHECK((caller.pc() == 8 && caller.sp() == OneStack::start + 64 && caller[rbx] == 7 && caller[rbp] == 6 &&
           caller[r15] == 1));
    CHECK(caller[r12] == from.registers[r12]);
    CHECK_FALSE(caller.knows(rax));
  }
  SECTION("some of them far from it") {
    CHECK(row_of({0x0e, 0x80, 0x10}).step(machine(), frame_at(0x1000, OneStack::start), stack, caller) ==
          Stepped::unknown);
    CHECK(row_of({0x0c, 7, 0x80, 8, 0x83, 0x80, 1, 0x90, 0x7f})
              .step(machine(), frame_at(0x1000, OneStack::start), stack, caller) == Stepped::caller);
    CHECK((caller.pc() == 2 && caller[rbx] == 1 && caller.sp() == OneStack::start + 1024));
  }
  SECTION("the entries of a PLT: after the push and before") {
    const FrameRow plt = row_of({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
    CHECK(plt.step(machine(), frame_at(0x1016, OneStack::start), stack, caller) == Stepped::caller);
    CHECK((caller.pc() == 1 && caller.sp() == OneStack::start + 8));
    CHECK(plt.step(machine(), frame_at(0x101b, OneStack::start), stack, caller) == Stepped::caller);
    CHECK((caller.pc() == 2 && caller.sp() == OneStack::start + 16));
  }
  SECTION(
      "a register that is not known leads nowhere; nor does memory that is not there; the outermost function has no "
      "caller") {
    NativeFrame from = frame_at(0x1000, OneStack::start);
    CHECK(row_of({0x07, 16}).step(machine(), from, stack, caller) == Stepped::root);
    CHECK(row_of({0x0f, 3, 0x76, 0x78, 0x06}).step(machine(), from, stack, caller) == Stepped::unknown);
    from.registers.forget(rbp);
    CHECK(row_of({0x0d, 6}).step(machine(), from, stack, caller) == Stepped::unknown);
    CHECK(row_of({}).step(machine(), frame_at(0x1000, 0xffff'ffff'ffff'fff8), stack, caller) == Stepped::unknown);
  }
}

TEST_CASE("bytes that are no call frame information", "[unit]") {
  const std::vector<std::byte> whole = make_file(
      {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x0c, 7, 8, 0x41, 0x0b, 0x0f, 3, 0x76, 0x78, 0x06});
  const OneStack stack({1, 2, 3, 4});
  Registers caller;
  const auto look = [&](const std::vector<std::byte>& file) {
    const FrameTable table(file, bias);
    for (Address offset = 0; offset < 16; ++offset) {
      const FrameRow row = table.at(machine(), bias + function + offset, bias + function,
                                    bias + function + function_size);
      (void)row.step(machine(), frame_at(bias + function + offset, OneStack::start), stack, caller);
    }
  };
  for (std::size_t size = 0; size < 0x280; ++size)
    look({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
  std::minstd_rand random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> file = whole;
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = random() % 4 == 0 ? header_at + random() % 20 : frames_at + random() % 0x48;
      file[at] = static_cast<std::byte>(random() % 256);
    }
    look(file);
  }
  // The largest offsets that can be encoded.
  for (const std::uint8_t opcode : Bytes{0x0e, 0x13, 0x83, 0x90}) {
    for (const std::uint8_t last : Bytes{0x01, 0x00, 0x7f})
      look(make_file({opcode, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, last}));
  }
}

namespace {

// This program, unwound by rows and by libunwind from here.
struct Self {
  Self() : memory(getpid()), modules(memory, open) {
    std::ifstream maps("/proc/self/maps");
    std::ostringstream text;
    text << maps.rdbuf();
    modules.update(AddressSpace::parse(text.str()));
  }
  static int open(const Mapping& mapping) { return ::open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC); }

  // `changed`: the memory, and the innermost frame in it, are others than they are.
  struct Changed {
    const Memory& memory;
    Address sp, pc;
  };
  [[gnu::noinline]] void look(const Changed* changed = nullptr) {
    ucontext_t here;
    getcontext(&here);
    const greg_t* const from = here.uc_mcontext.gregs;
    Registers registers;
    for (const auto& [number, at] : {std::pair{rbx, REG_RBX},
                                     {rbp, REG_RBP},
                                     {r12, REG_R12},
                                     {r13, REG_R13},
                                     {r14, REG_R14},
                                     {r15, REG_R15},
                                     {rsp, REG_RSP},
                                     {rip, REG_RIP}})
      registers.set(number, static_cast<Address>(from[at]));
    if (changed != nullptr) registers.set_sp(changed->sp), registers.set_pc(changed->pc);
    const Memory& stack = changed != nullptr ? changed->memory : memory;
    Unwinder rows(modules, machine()), libunwind(modules, machine(), Unwinder::Source::libunwind);
    for (int twice = 0; twice < 2; ++twice) {
      frames.clear(), expected.clear();
      end = rows.unwind(registers, stack, nullptr, frames);
      expected_end = libunwind.unwind(registers, stack, nullptr, expected);
    }
    for (const std::size_t limit : {std::size_t{1}, frames.size() - 1}) {
      std::vector<NativeFrame> some;
      CHECK(rows.unwind(registers, stack, nullptr, some, limit) == Unwinder::End::limit);
      CHECK(some.size() == limit);
    }
  }
  void check() const {
    CHECK(end == Unwinder::End::root);
    CHECK(expected_end == end);
    CHECK(Agreement::compare(frames, expected).empty());
  }

  LiveMemory memory;
  Modules modules;
  std::vector<NativeFrame> frames, expected;
  Unwinder::End end = Unwinder::End::lost, expected_end = Unwinder::End::lost;
};

Self* self = nullptr;

// Memory in which one word is another one.
struct WithWord : Memory {
  WithWord(const Memory& memory, Address at, Address word) : memory(memory), at(at), word(word) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (!memory.read(address, into)) return false;
    for (std::size_t i = 0; i < sizeof word; ++i) {
      if (at + i - address < into.size()) into[at + i - address] = std::as_bytes(std::span(&word, 1))[i];
    }
    return true;
  }
  const Memory& memory;
  Address at, word;
};

// luaspy_test_catches(f) calls f(sp) and then jumps over a handler of exceptions; its frame has 48 bytes.
extern "C" void luaspy_test_catches(void (*)(Address sp));
extern "C" const char luaspy_test_handler[];
asm(R"(
  .text
  .type luaspy_test_catches, @function
luaspy_test_catches:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  sub $32, %rsp
  .cfi_def_cfa_offset 48
  mov %rdi, %rax
  mov %rsp, %rdi
  call *%rax
  jmp 1f
  nop
luaspy_test_handler:
  nop
1:
  add $32, %rsp
  pop %rbp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size luaspy_test_catches, .-luaspy_test_catches
)");

}  // namespace

TEST_CASE("rows and libunwind make the same frames of this program", "[unit]") {
  Self here;
  SECTION("from a function") {
    here.look();
    here.check();
  }
  SECTION("from what the C library calls") {
    self = &here;
    int values[] = {2, 1};
    std::qsort(values, 2, sizeof values[0], [](const void* a, const void* b) {
      self->look();
      return *static_cast<const int*>(a) - *static_cast<const int*>(b);
    });
    here.check();
  }
  SECTION("from a signal handler, through the trampoline that has been put on the stack for it") {
    self = &here;
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { self->look(); };
    REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
    REQUIRE(raise(SIGUSR1) == 0);
    sigaction(SIGUSR1, &before, nullptr);
    here.check();
    CHECK(here.frames.size() > 8);
  }
}

// As libgcc's _Unwind_RaiseException does with its last instructions.
TEST_CASE("a stack goes on where a function is about to return to the handler of an exception", "[unit]") {
  Self here;
  self = &here;
  static Address return_address;
  return_address = 0;
  const auto handler = reinterpret_cast<Address>(luaspy_test_handler);
  const auto throws = [](Address sp) {
    const WithWord thrown(self->memory, sp - 8, reinterpret_cast<Address>(luaspy_test_handler));
    const WithWord memory(thrown, sp + 40, return_address != 0 ? return_address : *thrown.get<Address>(sp + 40));
    const Self::Changed changed{memory, sp - 8, reinterpret_cast<Address>(luaspy_test_catches)};
    self->look(&changed);
  };
  SECTION("and what that function has called") {
    luaspy_test_catches([](Address) { self->look(); });
    const std::vector<NativeFrame> before = std::move(here.frames);
    luaspy_test_catches(throws);
    here.check();
    REQUIRE(here.frames.size() > 3);
    CHECK(here.frames[1].pc == handler);
    CHECK(here.frames[1].lookup == handler);
    const auto callers = std::span(here.frames).subspan(3);
    REQUIRE(before.size() > callers.size());
    CHECK(std::ranges::equal(callers, std::span(before).last(callers.size()), {}, &NativeFrame::sp, &NativeFrame::sp));
    CHECK(before[before.size() - callers.size() - 1].sp == here.frames[2].sp);
  }
  SECTION("but ends where nothing has called that, either") {
    return_address = handler;
    luaspy_test_catches(throws);
    here.check();
    REQUIRE(here.frames.size() == 2);
    CHECK(here.frames[1].pc == handler);
  }
}

}  // namespace luaspy::frame_table_test
