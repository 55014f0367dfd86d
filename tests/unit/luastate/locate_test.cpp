// What a look may cost in a stop, whatever is on the stack, and what the next one then knows.

#include "luastate/locate.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "luastate/puc/puc_lua.h"

namespace luaspy::locate_test {
namespace {

constexpr Address objects = 0x10000000, stack_start = 0x7ff000000000;
constexpr std::size_t state_size = 0x400;

// States of Lua 5.4, each with a global_State or all of the first one's, and a C stack. Counts what is read.
class Pool : public Memory {
 public:
  static const PucLua& lua() {
    for (const Layout& row : layouts()) {
      if (row.name == "5.4.3-5.4.9") return puc_lua(row);
    }
    FAIL("no row for 5.4");
    throw 0;
  }

  Pool(std::size_t states, std::size_t stack_words, bool shared = false)
      : heap_(states * state_size), stack_(8 * stack_words) {
    const Layout& row = lua().layout();
    for (std::size_t i = 0; i < states; ++i) {
      const Address L = state(i), G = state(shared ? 0 : i) + 0x100, slots = L + 0x300, base_ci = L + row.L_base_ci;
      put(L + row.L_tt, row.tag_thread);
      put(L + row.L_G, G);
      put(L + row.L_ci, base_ci);
      put(L + row.L_stack, slots);
      put(L + row.L_stack_last, slots + 64);
      put(base_ci + row.ci_func, slots);
      put(G + row.G_mainthread, state(shared ? 0 : i));
    }
  }
  Address state(std::size_t i) const { return objects + i * state_size; }
  Address place(std::size_t word) const { return stack_start + 8 * word; }
  template <typename T>
  void put(Address address, T value) {
    REQUIRE(at(address, sizeof value) != nullptr);
    std::memcpy(at(address, sizeof value), &value, sizeof value);
  }
  // The state runs: it has a record of a protected call there, whose luaD_rawrunprotected mentions it.
  void run(std::size_t i, std::size_t word) {
    put(place(word), state(i));
    put(state(i) + lua().layout().L_errorJmp, place(word + 1));
    put(place(word + 1), Address{0});
  }
  void end(std::size_t i) { put(state(i) + lua().layout().L_errorJmp, Address{0}); }

  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    const std::byte* const from = const_cast<Pool*>(this)->at(address, into.size());
    if (from != nullptr) std::memcpy(into.data(), from, into.size());
    return from != nullptr;
  }
  Locator::ThreadStack stack() const { return {stack_start, stack_}; }
  mutable std::int64_t reads = 0;

 private:
  std::byte* at(Address address, std::size_t size) {
    if (address - objects < heap_.size() && heap_.size() - (address - objects) >= size)
      return heap_.data() + (address - objects);
    if (address - stack_start < stack_.size() && stack_.size() - (address - stack_start) >= size)
      return stack_.data() + (address - stack_start);
    return nullptr;
  }
  std::vector<std::byte> heap_, stack_;
};

// One look after the other, as StackReader makes them.
class Looks {
 public:
  // Without `knows`, as long as the program's Lua was not found: until know().
  explicit Looks(const Pool& pool, bool knows = true) : pool_(pool) {
    if (knows) know();
    registers_.set_sp(stack_start);
  }
  void know() { locator_.try_layouts({&Pool::lua()}); }
  // True if it missed nothing.
  bool look(Locator::Unknown unknown) {
    const std::vector<std::byte> before = before_;
    pool_.reads = 0;
    locator_.locate({pool_, registers_, pool_.stack()}, {{stack_start, before}, &mentions_}, unknown, active, deferred_,
                    Locator::Effort::bounded);
    reads = pool_.reads;
    mentions_ = locator_.mentions();
    before_.assign(pool_.stack().bytes.begin(), pool_.stack().bytes.end());
    const std::vector<Address> missed = locator_.find_missed(pool_, pool_.stack(), deferred_, locator_.left_out(),
                                                             mentions_, [](Address) { return false; });
    for (const Address L : missed) mentions_.states.push_back(L);
    return missed.empty();
  }
  // Of a thread of which nothing is remembered.
  void look_at_another(const Pool& other, Locator::Unknown unknown) {
    std::vector<ActiveState> found;
    std::vector<Address> deferred;
    locator_.locate({other, registers_, other.stack()}, {}, unknown, found, deferred);
  }
  std::vector<ActiveState> active;
  std::int64_t reads = 0;  // of the last look, in the stop

 private:
  const Pool& pool_;
  Locator locator_{own_machine()};
  Registers registers_;
  Locator::Mentions mentions_;
  std::vector<std::byte> before_;
  std::vector<Address> deferred_;
};

}  // namespace

TEST_CASE("a pool of states on the stack costs a look no more the larger it is", "[unit]") {
  const Locator::Unknown unknown = GENERATE(Locator::Unknown::read, Locator::Unknown::defer);
  std::int64_t first_reads = 0, later_reads = 0;
  for (const std::size_t states : {500u, 2'000u, 20'000u}) {
    Pool pool(states, states + 100);
    for (std::size_t i = 0; i < states; ++i) pool.put(pool.place(100 + i), pool.state(i));
    pool.run(0, 10);
    Looks looks(pool);
    // Most of the pool is left out at first. A look that defers has to find the running state, too.
    CHECK(looks.look(unknown) == (unknown == Locator::Unknown::read));
    if (states == 500) first_reads = looks.reads;
    INFO(states << " " << looks.reads);
    CHECK(looks.reads == first_reads);
    CHECK(looks.reads < 1500);
    for (int i = 0; i < 3; ++i) CHECK(looks.look(unknown));
    if (states == 500) later_reads = looks.reads;
    CHECK(looks.reads == later_reads);
    CHECK(looks.reads < 300);
    REQUIRE(looks.active.size() == 1);
    CHECK(looks.active[0].L == pool.state(0));
  }
}

TEST_CASE("states of a pool that run by turns are found at once", "[unit]") {
  constexpr std::size_t states = 2'000;
  Pool pool(states, states + 100);
  for (std::size_t i = 0; i < states; ++i) pool.put(pool.place(100 + i), pool.state(i));
  Looks looks(pool);
  for (std::size_t i = 0; i < states; i += 7) {
    pool.run(i, 10);
    const bool found = looks.look(Locator::Unknown::read);
    INFO(i);
    CHECK(found);
    CHECK(looks.reads < 1000);
    REQUIRE(looks.active.size() == 1);
    CHECK(looks.active[0].L == pool.state(i));
    pool.end(i);
  }
}

TEST_CASE("what a look had no time for is found by the next one", "[unit]") {
  constexpr std::size_t words = 50'000;
  Pool pool(20'000, words);
  // Nothing but pointers to where no state is, all different, and the running state beyond them.
  for (std::size_t i = 0; i < words - 100; ++i) pool.put(pool.place(i), objects + 8 + 16 * i);
  pool.run(3, words - 50);
  Looks looks(pool);
  CHECK(!looks.look(Locator::Unknown::read));
  CHECK(looks.reads < 1000);
  CHECK(looks.active.empty());
  CHECK(looks.look(Locator::Unknown::read));
  REQUIRE(looks.active.size() == 1);
  CHECK(looks.active[0].L == pool.state(3));
  for (std::size_t i = 0; i < words - 100; ++i) pool.put(pool.place(i), objects + 24 + 16 * i);  // all new
  CHECK(looks.look(Locator::Unknown::defer));
  CHECK(looks.reads < 1000);
  REQUIRE(looks.active.size() == 1);
  CHECK(looks.active[0].L == pool.state(3));
}

TEST_CASE("many states that call each other are found, if not at once", "[unit]") {
  constexpr std::size_t states = 200;
  Pool pool(states, 40 * states, true);
  for (std::size_t i = 0; i < states; ++i) pool.run(i, 40 * i);
  Looks looks(pool);
  int failed = 0;
  while (!looks.look(Locator::Unknown::read) && failed < 10) ++failed;
  CHECK(failed < 10);
  REQUIRE(looks.active.size() == states);
  for (std::size_t i = 0; i < states; ++i) CHECK(looks.active[i].L == pool.state(i));
}

// The end of a fiber's stack may not be known; above it is the heap, and the state in it.
TEST_CASE("a state that lies above the stack in what was read of it", "[unit]") {
  const Locator::Unknown unknown = GENERATE(Locator::Unknown::read, Locator::Unknown::defer);
  Pool pool(1, 1000);
  const Layout& row = Pool::lua().layout();
  const Address L = pool.place(600), G = L + 0x100, slots = L + 0x300;
  pool.put(L + row.L_tt, row.tag_thread);
  pool.put(L + row.L_G, G);
  pool.put(L + row.L_ci, L + row.L_base_ci);
  pool.put(L + row.L_stack, slots);
  pool.put(L + row.L_stack_last, slots + 64);
  pool.put(L + row.L_base_ci + row.ci_func, slots);
  pool.put(G + row.G_mainthread, L);
  pool.put(pool.place(20), L);
  pool.put(L + row.L_errorJmp, pool.place(21));
  Looks looks(pool);
  if (!looks.look(unknown)) CHECK(looks.look(unknown));
  REQUIRE(looks.active.size() == 1);
  CHECK(looks.active[0].L == L);
}

// Its words lie where they lay when it was no state yet.
TEST_CASE("a state that comes late is found where it was looked for in vain", "[unit]") {
  const Locator::Unknown unknown = GENERATE(Locator::Unknown::read, Locator::Unknown::defer);
  const int turns = GENERATE(1, 2, 3);  // threads that are looked at by turns
  Pool pool(2, 1000), other(1, 1000);
  pool.run(0, 10);
  const Address linked = pool.state(0) + 0x100 + Pool::lua().layout().G_mainthread;
  pool.put(linked, Address{0});
  Looks looks(pool);
  const auto finds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      (void)looks.look(unknown);
      if (!looks.active.empty()) return true;
      for (int turn = 1; turn < turns; ++turn) looks.look_at_another(other, unknown);
    }
    return false;
  };
  CHECK_FALSE(finds(200));
  pool.put(linked, pool.state(0));
  REQUIRE(finds(300));
  CHECK(looks.active[0].L == pool.state(0));
}

// A program that has just begun: looks at it may come before its files have been searched.
TEST_CASE("a state is found where it lay before it was known what one looks like", "[unit]") {
  Pool pool(2, 1000);
  pool.run(0, 10);
  Looks looks(pool, false);
  for (int i = 0; i < 3; ++i) CHECK(looks.look(Locator::Unknown::read));
  CHECK(looks.active.empty());
  looks.know();
  (void)looks.look(Locator::Unknown::read);
  REQUIRE(looks.active.size() == 1);
  CHECK(looks.active[0].L == pool.state(0));
}

}  // namespace luaspy::locate_test
