// What is said of each processor agrees with itself.

#include "arch/machine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace luaspy::machine_test {

TEST_CASE("a processor's registers have names, and numbers that fit into Registers", "[arch]") {
  for (const char* const name : {"x86_64", "aarch64"}) {
    INFO(name);
    const Machine* const machine = find_machine(name);
    REQUIRE(machine != nullptr);
    CHECK(machine->name == name);
    const std::size_t count = machine->register_names.size();
    CHECK(count <= Registers::most);
    CHECK(std::set(machine->register_names.begin(), machine->register_names.end()).size() == count);
    const auto is_general = [&](unsigned number) { return number > Registers::sp_number && number < count; };
    CHECK(machine->callee_saved.size() <= Machine::most_callee_saved);
    CHECK(std::ranges::all_of(machine->callee_saved, is_general));
    CHECK(std::ranges::all_of(machine->first_arguments, is_general));
    CHECK(machine->frame_pointer_place < machine->callee_saved.size());
    CHECK((machine->link_register == Machine::no_register || is_general(machine->link_register)));
    CHECK(machine->page_sizes[0] == smallest_page);
    CHECK(std::ranges::is_sorted(machine->page_sizes));
    CHECK(std::ranges::all_of(machine->page_sizes, [](std::uint32_t size) { return size % smallest_page == 0; }));
    const Machine::Luajit& vm = machine->luajit;
    CHECK((is_general(vm.base) && is_general(vm.c_base) && is_general(vm.pc) && is_general(vm.dispatch)));
    // Each register has a number in DWARF, and only one.
    CHECK(machine->by_dwarf.size() == count);
    CHECK(std::set(machine->by_dwarf.begin(), machine->by_dwarf.end()).size() == count);
    CHECK(machine->of_dwarf(machine->dwarf_return_address) != Machine::no_register);
    CHECK(machine->of_dwarf(count) == Machine::no_register);
    CHECK(machine->of_dwarf(~std::uint64_t{0}) == Machine::no_register);
  }
  CHECK(find_machine("aarch64")->page_bytes(16384) == 16384);
  CHECK(find_machine("aarch64")->page_bytes(12345) == smallest_page);
  CHECK(find_machine("x86_64")->page_bytes(16384) == smallest_page);
  CHECK(find_machine("") == nullptr);
  CHECK(find_machine("x86") == nullptr);
  CHECK(find_machine(own_machine().name) == &own_machine());
}

TEST_CASE("of a processor whose instructions cannot be read nothing is claimed", "[arch]") {
  const MachineCode code;
  const std::array<std::byte, 16> bytes{};
  CHECK(code.call_before(0x1000, bytes).kind == CallSite::Kind::none);
  CHECK(!code.direct_call_at(0x1000, bytes));
  CHECK(!code.plt_slot(0x1000, bytes));
  CHECK(!code.shape_of_frame(bytes, 8));
  CHECK(!code.ends_here(bytes));
  CHECK(std::ranges::count(code.additions(bytes, 4), 0) == Registers::most);
}

}  // namespace luaspy::machine_test
