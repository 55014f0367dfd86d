// A processor whose calls leave the return address in a register: AArch64. A function that calls nothing
// has none on the stack.

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "luastate/luas.h"
#include "stack/vm_frames.h"
#include "unit/unwind/file_with_frames.h"

namespace luaspy::link_register_test {
namespace {

const Machine& aarch64() { return *find_machine("aarch64"); }

constexpr Address mapped_at = 0x400000, leaf = 0x800, middle = 0x900, outermost = 0xa00;  // offsets in the file
constexpr unsigned x(unsigned number) { return 2 + number; }
constexpr unsigned fp = x(29), lr = x(30);

// BL at `at`.
void put_call(std::vector<std::byte>& file, Address at, Address target) {
  const auto distance = static_cast<std::uint32_t>(static_cast<std::int64_t>(target - at) / 4);
  put(file, at, 0x94000000 | (distance & 0x3ffffff));
}

// outermost calls middle, and that calls leaf.
std::vector<std::byte> with_calls(std::vector<std::byte> file) {
  put_call(file, middle + 0x10, leaf);
  put_call(file, outermost + 0x10, middle);
  return file;
}
constexpr Address in_leaf = mapped_at + leaf + 8, in_middle = mapped_at + middle + 0x14,
                  in_outermost = mapped_at + outermost + 0x14;

// As a compiler writes it: leaf saves nothing; middle has stp x29, x30, [sp, -32]! and mov x29, sp; and
// outermost has no caller.
std::vector<std::byte> file_of_compiler() {
  const Bytes saves = {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3}, has_no_caller = {0x07, 30};
  return with_calls(file_with_frames(EM_AARCH64, aarch64_rules,
                                     {{leaf, 0x100, {}}, {middle, 0x100, saves}, {outermost, 0x100, has_no_caller}}));
}

// The modules of a process that has mapped one file.
struct OneModule {
  explicit OneModule(std::vector<std::byte> bytes) : file(std::move(bytes)) {
    Mapping mapping{
        .start = mapped_at, .end = mapped_at + file.size(), .readable = true, .executable = true, .inode = 7};
    mapping.path = "/made.so";
    modules.update(AddressSpace({mapping}));
  }
  int open() const {
    const int opened = ::memfd_create("made", MFD_CLOEXEC);
    return ::write(opened, file.data(), file.size()) == static_cast<ssize_t>(file.size()) ? opened : -1;
  }
  std::vector<std::byte> file;
  OneStack memory{{}};
  Modules modules{memory, [this](const Mapping&) { return open(); }};
};

Registers registers_in_leaf() {
  Registers registers;
  registers.set_pc(in_leaf);
  registers.set_sp(OneStack::start);
  registers.set(lr, in_middle);
  registers.set(fp, OneStack::start);  // middle's frame
  registers.set(x(19), 0x1919);
  return registers;
}
// middle's frame, with what it has saved at its lower end; then outermost's.
const OneStack frames_of_callers({OneStack::start + 32, in_outermost, 0, 0, 0, 0, 0, 0});

std::vector<Address> pcs(const std::vector<NativeFrame>& frames) {
  std::vector<Address> all;
  for (const NativeFrame& frame : frames) all.push_back(frame.pc);
  return all;
}

}  // namespace

TEST_CASE("a return address is in the link register until it is saved", "[arch]") {
  const Registers registers = registers_in_leaf();
  const OneStack stack({0x1111, 0x2222});
  CHECK(aarch64().return_address(registers, OneStack::start, {}, stack) == in_middle);
  CHECK(aarch64().return_address(registers, OneStack::start, OneStack::start + 8, stack) == 0x2222);
  CHECK_FALSE(aarch64().return_address(Registers(), OneStack::start, {}, stack));
  CHECK(aarch64().bytes_on_return() == 0);
  const Machine& x86_64 = *find_machine("x86_64");
  CHECK(x86_64.return_address(registers, OneStack::start, {}, stack) == 0x1111);
  CHECK_FALSE(x86_64.return_address(registers, 0, {}, stack));
  CHECK(x86_64.bytes_on_return() == 8);
}

TEST_CASE("AArch64's calls", "[arch]") {
  const MachineCode& code = aarch64().code;
  const auto before = [&](std::uint32_t instruction) {
    return code.call_before(0x1000, std::as_bytes(std::span(&instruction, 1)));
  };
  using Kind = CallSite::Kind;
  CHECK(before(0x94000004).kind == Kind::direct);  // bl .+16
  CHECK(before(0x94000004).target == 0xffc + 16);
  CHECK(before(0x97ffffff).target == 0xffc - 4);     // bl .-4
  CHECK(before(0xd63f0200).kind == Kind::indirect);  // blr x16
  CHECK(before(0xd63f0a1f).kind == Kind::indirect);  // blraaz x16
  CHECK(before(0xd73f0a11).kind == Kind::indirect);  // blraa x16, x17
  CHECK(before(0xd61f0200).kind == Kind::none);      // br x16
  CHECK(before(0xd65f03c0).kind == Kind::none);      // ret
  CHECK(before(0x14000004).kind == Kind::none);      // b .+16
  const std::uint32_t jump = 0x14000004;
  CHECK(code.direct_jump_at(0x1000, std::as_bytes(std::span(&jump, 1))) == 0x1010);
  CHECK_FALSE(code.direct_call_at(0x1000, std::as_bytes(std::span(&jump, 1))));
  CHECK_FALSE(code.direct_jump_at(0x1000, {}));
}

TEST_CASE("call frame information that says nothing of the return address", "[unwind]") {
  const std::vector<std::byte> file = file_of_compiler();
  const FrameTable table(file, mapped_at);
  const auto row_at = [&](Address function, Address offset) {
    const Address start = mapped_at + function;
    return table.at(aarch64(), start + offset, start, start + 0x100);
  };
  using Where = FrameRow::Where;
  CHECK(row_at(leaf, 8).return_address == FrameRow::Slot{0, lr, Where::in_register});
  CHECK(row_at(middle, 0).return_address == FrameRow::Slot{0, lr, Where::in_register});
  CHECK(row_at(middle, 0x10).return_address == FrameRow::Slot{-24, 0, Where::at_cfa});
  CHECK(row_at(outermost, 0x10).return_address.where == Where::undefined);

  NativeFrame from;
  from.pc = from.lookup = in_leaf;
  from.registers = registers_in_leaf();
  Registers caller;
  CHECK(row_at(leaf, 8).step(aarch64(), from, frames_of_callers, caller) == Stepped::caller);
  CHECK(caller.pc() == in_middle);
  CHECK(caller.sp() == OneStack::start);
  CHECK(caller[x(19)] == 0x1919);
  CHECK_FALSE(caller.knows(lr));  // it was that of the leaf
  // A frame that has called has lost its link register.
  from.registers = caller;
  CHECK(row_at(leaf, 8).step(aarch64(), from, frames_of_callers, caller) == Stepped::unknown);
}

TEST_CASE("a stack whose innermost function calls nothing", "[unwind]") {
  const std::vector<Address> expected = {in_leaf, in_middle, in_outermost};
  std::vector<NativeFrame> frames;
  SECTION("with call frame information") {
    const OneModule made(file_of_compiler());
    Unwinder unwinder(made.modules, aarch64());
    CHECK(unwinder.unwind(registers_in_leaf(), frames_of_callers, nullptr, frames) == Unwinder::End::root);
    CHECK(pcs(frames) == expected);
    CHECK(frames[1].sp == OneStack::start);
    CHECK(frames[2].sp == OneStack::start + 32);
  }
  SECTION("without: the link register, then frames that frame pointers lead to") {
    const OneModule made(with_calls(file_with_frames(EM_AARCH64, aarch64_rules, {})));
    Unwinder unwinder(made.modules, aarch64());
    (void)unwinder.unwind(registers_in_leaf(), frames_of_callers, nullptr, frames);
    CHECK(pcs(frames) == expected);
    CHECK(frames[1].sp == OneStack::start);
  }
  SECTION("without, and it has just built a frame: its caller is not shown twice") {
    const OneModule made(with_calls(file_with_frames(EM_AARCH64, aarch64_rules, {})));
    Unwinder unwinder(made.modules, aarch64());
    const OneStack stack({OneStack::start + 16, in_middle, OneStack::start + 48, in_outermost, 0, 0, 0, 0});
    (void)unwinder.unwind(registers_in_leaf(), stack, nullptr, frames);
    CHECK(pcs(frames) == expected);
    CHECK(frames[1].sp == OneStack::start + 16);
  }
}

// LuaJIT's virtual machine saves the link register in its C frame, like other registers.
TEST_CASE("a C frame of LuaJIT whose return address is still in the link register", "[unwind]") {
  const OneModule made(with_calls(file_with_frames(EM_AARCH64, aarch64_rules, {})));
  const Unwinder unwinder(made.modules, aarch64());
  NativeCode native(made.modules, unwinder);
  NativeCode::VmImage core{mapped_at, mapped_at + 0x1000, {}, {}, {}, {}, {}, {}};
  core.vm.emplace();
  core.vm->start = mapped_at + leaf, core.vm->end = mapped_at + leaf + 0x100;
  core.vm->frame_size = 48;
  core.vm->saved = {{Registers::pc_number, 16}, {fp, 8}};
  const Address builds = in_leaf + 0x40;
  core.vm->sequences = {{builds, builds + 9, true, false}};
  LuaImage image;
  image.start = core.start, image.end = core.end;
  image.layouts = layouts_for("LuaJIT 2.1");
  REQUIRE_FALSE(image.layouts.empty());
  const FileVersion file{1, 2, 3, 4};
  NativeCode::KnownVmImages known = {{file, core}};
  native.update({image}, known, [&](Address) { return file; });
  REQUIRE(native.vm_at(in_leaf) != nullptr);

  NativeFrame from;
  from.pc = from.lookup = in_leaf, from.sp = OneStack::start;
  from.registers = registers_in_leaf();
  const auto trace_of = [](const NativeFrame&) { return VmFrames::CodeRange(); };
  const VmFrames rule(aarch64(), made.modules, native, {}, false, trace_of);
  Registers caller;
  // The frame is complete, and not in the chain: sp points at it.
  const OneStack built({0, 0, 0, 0, in_middle, 0x2929});
  CHECK(rule.step(from, built, caller));
  CHECK(caller.pc() == in_middle);
  CHECK(caller[fp] == 0x2929);
  CHECK(caller.sp() == OneStack::start + 48);
  // The frame is just being built: what will be the place of the return address has an old word.
  from.pc = from.lookup = builds;
  const OneStack stale({in_outermost, in_outermost, in_outermost, in_outermost, in_outermost, in_outermost});
  CHECK(rule.step(from, stale, caller));
  CHECK(caller.pc() == in_middle);
  // The same where nothing says what the link register had.
  from.registers.forget(lr);
  CHECK_FALSE(rule.step(from, OneStack({}), caller));
}

}  // namespace luaspy::link_register_test
