#include "luastate/luajit/vm_code.h"

#include <catch2/catch.hpp>
#include <initializer_list>

#include "arch/x86_64/registers.h"

namespace luaspy {
namespace {

// As much of a virtual machine as find_vm_code() looks for: instructions that end in a dispatch, one way in, one way
// out, and the entry of traces.
std::vector<std::byte> virtual_machine(std::initializer_list<int> trace_entry) {
  std::vector<std::byte> code(128);
  const auto add = [&](std::initializer_list<int> bytes) {
    for (const int byte : bytes) code.push_back(static_cast<std::byte>(byte));
  };
  for (int i = 0; i < 80; ++i) add({0x90, 0x41, 0xff, 0x24, 0xee});         // jmp [r14+rbp*8]
  add({0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28});        // saveregs
  add({0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3});  // restoreregs; ret
  add(trace_entry);
  add({0x41, 0xff, 0x24, 0xee});
  add({0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb});  // ->vm_ffi_call
  return code;
}

int place_of_r13(std::initializer_list<int> trace_entry) {
  const std::vector<std::byte> code = virtual_machine(trace_entry);
  const std::optional<VmCode> vm = find_vm_code(0x10000, code);
  REQUIRE(vm);
  REQUIRE(vm->saved_by_traces.size() == 2);
  CHECK(vm->saved_by_traces[0].number == x86_64::r12);
  CHECK(vm->saved_by_traces[0].above == 0);
  CHECK(vm->saved_by_traces[1].number == x86_64::r13);
  return vm->saved_by_traces[1].above;
}

}  // namespace

TEST_CASE("where traces save r13 depends on the size of references") {
  // sub rsp, 16; mov [rsp+16], r12; mov [rsp+8], r13
  CHECK(place_of_r13({0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x64, 0x24, 0x10, 0x4c, 0x89, 0x6c, 0x24, 0x08}) == -8);
  // mov [rsp], r12; mov [rsp+8], r13; sub rsp, 16
  CHECK(place_of_r13({0x4c, 0x89, 0x24, 0x24, 0x4c, 0x89, 0x6c, 0x24, 0x08, 0x48, 0x83, 0xec, 0x10}) == 8);
}

}  // namespace luaspy
