#include <catch2/catch.hpp>
#include <map>

#include "arch/x86_64/instruction.h"
#include "luastate/puc/collector_code.h"
#include "luastate/puc/layouts.h"

namespace luaspy {
namespace {

constexpr Address execute = 0x10000, step = 0x20000, singlestep = 0x30000, fullgc = 0x40000, lua_gc = 0x50000,
                  other = 0x60000;

// Machine code assembled by hand.
struct Code {
  MachineFunction function;
  explicit Code(Address start) { function.start = start; }
  Code& bytes(std::initializer_list<int> values) {
    for (const int value : values) function.code.push_back(static_cast<std::byte>(value));
    return *this;
  }
  Code& call(Address target) {
    bytes({0xe8});
    const Address relative = target - (function.start + function.code.size() + 4);
    for (int i = 0; i < 4; ++i) bytes({static_cast<int>(relative >> 8 * i & 0xff)});
    return *this;
  }
  Code& ret() { return bytes({0xc3}); }
};

const Layout& row_of(std::string_view series) {
  const Layout* found = nullptr;
  for (const Layout& row : layouts()) {
    if (row.series == series && row.value_size == 16) found = &row;
  }
  return *found;  // the newest
}

constexpr std::initializer_list<int> load_G = {0x48, 0x8b, 0x43, 0x18};              // mov rax, [rbx+0x18]
constexpr std::initializer_list<int> compare_debt = {0x48, 0x83, 0x78, 0x18, 0x00};  // cmp qword [rax+0x18], 0
constexpr int jle = 0x7e, jg = 0x7f;
constexpr int call_size = 5;

struct Program {
  std::map<Address, MachineFunction> functions;
  void add(const Code& code) { functions[code.function.start] = code.function; }
  CollectorCode find(const Layout& row) const {
    return find_collector_code(row, functions.at(execute), [&](Address address) {
      const auto found = functions.find(address);
      return found != functions.end() ? found->second : MachineFunction{};
    });
  }
};

// luaC_step, singlestep that writes gcstate at `gcstate`, and their callers.
Program program_with(const Code& interpreter, int gcstate) {
  Program program;
  program.add(interpreter);
  program.add(Code(step).call(singlestep).ret());
  program.add(Code(singlestep).bytes({0xc6, 0x43, gcstate, 0x03}).ret());  // mov byte [rbx+gcstate], 3
  program.add(Code(fullgc).bytes({0x66, 0xc7, 0x43, gcstate, 0x08, 0x00}).call(singlestep).ret());  // with gckind
  program.add(Code(lua_gc).call(fullgc).call(step).ret());
  program.add(Code(other).ret());
  return program;
}

const std::vector<Address> step_and_singlestep = {step, singlestep};

}  // namespace

TEST_CASE("luaC_step is what luaV_execute calls when GCdebt is not paid", "[collector_code]") {
  const auto interpreter = [&](int skips, Address paid, Address due) {
    Code code(execute);
    code.call(other).bytes(load_G).bytes(compare_debt).bytes({skips, call_size}).call(due).call(paid);
    return code.bytes(load_G).bytes(compare_debt).bytes({skips, call_size}).call(due).call(paid).call(other).ret();
  };
  CHECK(program_with(interpreter(jle, other, step), 101).find(row_of("5.4")).functions == step_and_singlestep);
  CHECK(program_with(interpreter(jg, step, other), 101).find(row_of("5.4")).functions == step_and_singlestep);
  // A Lua that counts down.
  CHECK(program_with(interpreter(jg, other, step), 107).find(row_of("5.5")).functions == step_and_singlestep);
  CHECK(program_with(interpreter(jg, other, step), 101).find(row_of("5.4")).step == 0);
  CHECK(program_with(interpreter(jle, other, step), 60).find(row_of("5.4")).step == 0);  // nothing writes gcstate
}

TEST_CASE("luaC_step of 5.1 is what luaV_execute calls when totalbytes has reached GCthreshold", "[collector_code]") {
  const auto interpreter = [&](std::initializer_list<int> comparison, int skip) {
    return Code(execute)
        .bytes({0x48, 0x8b, 0x43, 0x20})
        .bytes(comparison)
        .bytes({skip, call_size})
        .call(step)
        .call(other)
        .ret();
  };
  constexpr int jb = 0x72, ja = 0x77;
  // mov rdx, [rax+112]; cmp [rax+120], rdx
  CHECK(
      program_with(interpreter({0x48, 0x8b, 0x50, 112, 0x48, 0x39, 0x50, 120}, jb), 33).find(row_of("5.1")).functions ==
      step_and_singlestep);
  // mov rdx, [rax+112]; cmp rdx, [rax+120]
  CHECK(
      program_with(interpreter({0x48, 0x8b, 0x50, 112, 0x48, 0x3b, 0x50, 120}, ja), 33).find(row_of("5.1")).functions ==
      step_and_singlestep);
  CHECK(program_with(interpreter({0x48, 0x8b, 0x50, 112, 0x48, 0x3b, 0x50, 120}, jb), 33).find(row_of("5.1")).step ==
        0);
}

TEST_CASE("a full collection works through what a step does", "[collector_code]") {
  const Code interpreter = Code(execute).bytes(load_G).bytes(compare_debt).bytes({jle, call_size}).call(step).ret();
  const Program program = program_with(interpreter, 101);
  const Layout& row = row_of("5.4");
  const CollectorCode collector = program.find(row);
  REQUIRE(collector.step == step);
  CHECK(joins_collector(row, collector, program.functions.at(fullgc)));
  CHECK(!joins_collector(row, collector, program.functions.at(lua_gc)));
  CHECK(!joins_collector(row, collector, program.functions.at(execute)));
  CHECK(!joins_collector(row, collector, program.functions.at(step)));
}

TEST_CASE("code that ends anywhere is read to its end", "[collector_code]") {
  const Code whole = Code(execute).bytes(load_G).bytes(compare_debt).bytes({jle, call_size}).call(step).ret();
  for (std::size_t size = 0; size < whole.function.code.size() - 1; ++size) {
    Code cut(execute);
    cut.function.code.assign(whole.function.code.begin(),
                             whole.function.code.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(program_with(cut, 101).find(row_of("5.4")).step == 0);
  }
}

TEST_CASE("an operand in memory has a base if it is a register and a displacement", "[instruction]") {
  const auto base = [](std::initializer_list<int> bytes) {
    const std::optional<x86_64::Instruction> instruction = x86_64::read_instruction(Code(0).bytes(bytes).function.code,
                                                                                    0);
    REQUIRE(instruction);
    CHECK(instruction->length == bytes.size());
    return instruction->base();
  };
  CHECK(base({0x48, 0x8b, 0x43, 0x18}) == 3u);                              // [rbx+0x18]
  CHECK(base({0x49, 0x8b, 0x44, 0x24, 0x18}) == 12u);                       // [r12+0x18]
  CHECK(base({0x48, 0x8b, 0x44, 0x88, 0x18}) == std::nullopt);              // [rax+rcx*4+0x18]
  CHECK(base({0x48, 0x8b, 0x05, 0x18, 0x00, 0x00, 0x00}) == std::nullopt);  // [rip+0x18]
  CHECK(base({0x48, 0x89, 0xd8}) == std::nullopt);                          // mov rax, rbx
  CHECK(!x86_64::read_instruction(Code(0).bytes({0x48, 0x8b, 0x43}).function.code, 0));
}

}  // namespace luaspy
