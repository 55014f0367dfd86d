// The fibers of a Tarantool that the test makes up.

#include "stack/tarantool_fiber.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>
#include <vector>

#include "events/label_table.h"

namespace luaspy::tarantool_fiber_test {
namespace {

constexpr Address base = 0x10000, stack_at = 0x40000, stack_size = 0x10000;

class Program : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < base || address - base > bytes_.size() || into.size() > bytes_.size() - (address - base))
      return false;
    std::memcpy(into.data(), bytes_.data() + (address - base), into.size());
    return true;
  }
  void put(Address at, Address word) { std::memcpy(bytes_.data() + (at - base), &word, sizeof word); }
  void put_text(Address at, std::string_view text) {
    std::memcpy(bytes_.data() + (at - base), text.data(), text.size());
    bytes_[at - base + text.size()] = std::byte{0};
  }
  // A struct fiber.
  void put_fiber(Address at, Address stack, std::string_view name) {
    put(at + 0x60, stack);
    put(at + 0x68, stack_size);
    put(at + 0x148, at + 0x150);
    put_text(at + 0x150, name);
  }
  std::span<const std::byte> from(Address sp, Address end) const {
    return std::span(bytes_).subspan(sp - base, end - sp);
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(0x80000);
};

struct Looks {
  Program program;
  bool is_tarantool = true;
  TarantoolFibers fibers{[this](const char*) { return is_tarantool; }};

  std::string look(Address sp, bool has_lua = true) {
    const Address end = (sp / stack_size + 1) * stack_size;
    fibers.touch(program, sp);
    std::string value = fibers.value({sp, program.from(sp, end), program, has_lua}, program);
    if (fibers.has_learned()) fibers.learn();
    return value;
  }
};

constexpr Address first = 0x20000, second = 0x21000, other_stack = stack_at + stack_size;
constexpr Address sp = stack_at + 0xf000, other_sp = other_stack + 0xe000;

// Another fiber has shown where in the struct what is.
void learn_from_another(Looks& looks) {
  constexpr Address fiber = 0x22000, another_sp = other_stack + stack_size + 0xf000;
  looks.program.put_fiber(fiber, another_sp - 0xf000, "another");
  looks.program.put(another_sp + 0x900, fiber);
  CHECK(looks.look(another_sp) == unknown_value);
}

}  // namespace

TEST_CASE("tarantool: a fiber is the one that has the stack", "[unit]") {
  Looks looks;
  Program& program = looks.program;
  program.put_fiber(first, stack_at, "one");
  program.put_fiber(second, other_stack, "two");
  program.put(sp + 0x800, second);  // one that it has woken
  program.put(sp + 0x900, first);
  program.put(other_sp + 0x100, second);
  learn_from_another(looks);
  CHECK(looks.look(sp) == unknown_value);  // which fiber has the stack was not known in the stop
  CHECK(looks.look(sp) == "one");
  CHECK(looks.look(sp + 0x40) == "one");
  CHECK(looks.look(other_sp, false) == "");  // Lua has not run there
  CHECK(looks.look(other_sp) == unknown_value);
  CHECK(looks.look(other_sp) == "two");
  CHECK(looks.look(other_sp, false) == "two");
  program.put_fiber(first, stack_at, "renamed");
  CHECK(looks.look(sp) == "renamed");
  program.put_text(0x30000, std::string(200, 'n'));  // a long name has a block of its own
  program.put(first + 0x148, 0x30000);
  CHECK(looks.look(sp) == std::string(200, 'n'));
}

TEST_CASE("tarantool: what is no fiber of the stack has no name", "[unit]") {
  Looks looks;
  Program& program = looks.program;
  learn_from_another(looks);
  program.put_fiber(first, stack_at, "one");
  CHECK(looks.look(sp) == unknown_value);  // nothing on the stack leads to it
  program.put(sp + 0x900, first);
  program.put(first + 0x148, Address{1});
  CHECK(looks.look(sp) == unknown_value);
  CHECK(looks.look(sp) == unknown_value);
  program.put_fiber(first, stack_at, "one");
  CHECK(looks.look(sp) == unknown_value);
  CHECK(looks.look(sp) == "one");
  program.put(first + 0x60, other_stack);  // it has ended, and its memory is another fiber's
  CHECK(looks.look(sp) == unknown_value);
  program.put_fiber(first, stack_at, "");
  CHECK(looks.look(sp) == unknown_value);
  program.put_fiber(first, stack_at, "a\nb");
  CHECK(looks.look(sp) == unknown_value);
}

// The arena of all stacks, and a fiber of its own behind it in memory.
TEST_CASE("tarantool: what looks like a fiber of every stack is none", "[unit]") {
  constexpr Address arena = 0x23000;
  Looks looks;
  Program& program = looks.program;
  program.put_fiber(arena, stack_at, "sched");
  program.put(arena + 0x68, 2 * stack_size);
  program.put(sp + 0x900, arena);
  program.put(other_sp + 0x900, arena);
  for (int i = 0; i < 3; ++i) {
    CHECK(looks.look(sp) == unknown_value);
    CHECK(looks.look(other_sp) == unknown_value);
  }
  program.put_fiber(first, stack_at, "one");
  program.put_fiber(second, other_stack, "two");
  program.put(sp + 0x800, first);
  program.put(other_sp + 0x800, second);
  for (int i = 0; i < 3; ++i) (void)looks.look(sp), (void)looks.look(other_sp);
  CHECK(looks.look(sp) == "one");
  CHECK(looks.look(other_sp) == "two");
}

TEST_CASE("tarantool: another program has no fibers", "[unit]") {
  Looks looks;
  looks.is_tarantool = false;
  looks.program.put_fiber(first, stack_at, "one");
  looks.program.put(stack_at + 0xf900, first);
  CHECK(looks.look(stack_at + 0xf000) == "");
  CHECK(looks.look(stack_at + 0xf000) == "");
}

}  // namespace luaspy::tarantool_fiber_test
