#include "luastate/state_places.h"

#include <catch2/catch.hpp>
#include <map>

namespace luaspy::state_places_test {
namespace {

constexpr Address first_state = 0x5000'0000, second_state = 0x5000'1000, cfa = 0x7fff'0000'1000;

class Words : public Memory {
 public:
  std::map<Address, Address> words;
  bool read(Address address, std::span<std::byte> into) const override {
    for (std::size_t i = 0; i < into.size(); ++i) {
      const auto word = words.find((address + i) / 8 * 8);
      const Address value = word != words.end() ? word->second : 0;
      into[i] = static_cast<std::byte>(value >> (address + i) % 8 * 8);
    }
    return true;
  }
};

NativeFrame execute_with(const Machine& machine, Address state) {
  NativeFrame frame;
  frame.function = 0x40'0000;
  frame.sp = cfa - 64;
  frame.cfa = cfa;
  frame.registers.set(machine.callee_saved[0], state);
  return frame;
}

}  // namespace

TEST_CASE("a frame whose usual place has another state belongs to none of those given", "[state_places]") {
  const Machine& machine = *find_machine("x86_64");
  StatePlaces places(machine);
  Words stack;
  const std::vector<Address> states = {first_state};
  for (int i = 0; i < 20; ++i) {
    const StatePlaces::Owner owner = places.owner(execute_with(machine, first_state), states, StatePlaces::none, stack);
    CHECK(owner.state == 0);
    CHECK(owner.certain == (i >= 7));
    CHECK(owner.another == 0);
  }
  // A leftover of an earlier call, in a slot.
  stack.words[cfa - 16] = first_state;
  const StatePlaces::Owner owner = places.owner(execute_with(machine, second_state), states, StatePlaces::none, stack);
  CHECK(owner.state == StatePlaces::none);
  CHECK(owner.another == second_state);
}

TEST_CASE("before a place is certain, any place may tell the state", "[state_places]") {
  const Machine& machine = *find_machine("x86_64");
  StatePlaces places(machine);
  Words stack;
  stack.words[cfa - 16] = first_state;
  const std::vector<Address> states = {first_state};
  const StatePlaces::Owner owner = places.owner(execute_with(machine, second_state), states, StatePlaces::none, stack);
  CHECK(owner.state == 0);
  CHECK(owner.another == 0);
}

}  // namespace luaspy::state_places_test
