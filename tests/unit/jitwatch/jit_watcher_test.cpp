// What is seen of a compiler from look to look.

#include "jitwatch/jit_watcher.h"

#include <catch2/catch.hpp>

#include <memory>

#include "luastate/luajit/luajit_lua.h"
#include "support/jit_window.h"

using namespace luaspy;

namespace {

using Kind = JitEvent::Kind;

// What a test changes, while the watcher reads it.
class SharedWindow : public Memory {
 public:
  explicit SharedWindow(const JitWindow& window) : window_(window) {}
  bool read(Address address, std::span<std::byte> into) const override { return window_.read(address, into); }

 private:
  const JitWindow& window_;
};

constexpr Address first = jit_start + 0x4000, second = jit_start + 0x5000;

}  // namespace

TEST_CASE("aborts and flushes are seen from look to look") {
  for (const bool gc64 : {true, false}) {
    INFO(gc64);
    const LuajitLayout layout = jit_layout_of(gc64);
    const LuajitLua lua(layout);
    JitWindow memory;
    put_main_thread(memory, layout);
    put_parameters(memory);
    put_penalty(memory, layout, 0, {first, 144, 8});
    JitWatcher watcher(std::make_unique<SharedWindow>(memory), 1, lua, jit_G, system::Clock::now());
    const JitKnowledge& seen = watcher.knowledge();
    // What was there before is known, and no event.
    watcher.look();
    CHECK(seen.events.empty());
    REQUIRE(seen.attempts.contains(first));
    CHECK(seen.attempts.at(first).failed == 2);
    put_penalty(memory, layout, 0, {first, 290, 7});
    put_penalty(memory, layout, 1, {second, 72, 8});
    watcher.look();
    watcher.look();  // nothing has changed since
    REQUIRE(seen.events.size() == 2);
    CHECK((seen.events[0].kind == Kind::abort && seen.events[0].failed == 3));
    CHECK((seen.events[1].kind == Kind::abort && seen.events[1].failed == 1));
    CHECK(seen.events[0].abort.reason == 7U);
    CHECK(seen.attempts.at(first).aborts.size() == 2);
    CHECK(seen.attempts.at(first).aborts.back().at.file.empty());  // never said where it is not known
    // lj_trace_flushall: all penalties are cleared.
    for (std::size_t slot = 0; slot < 2; ++slot) put_penalty(memory, layout, slot, {});
    watcher.look();
    REQUIRE(seen.events.size() == 3);
    CHECK(seen.events[2].kind == Kind::flush);
    CHECK(seen.flushes == 1);
    CHECK(seen.attempts.at(first).failed == 0);
    // It is gone: what was known stays.
    memory.bytes.clear();
    watcher.look();
    watcher.survey();
    CHECK(seen.events.size() == 3);
    CHECK(seen.last.has_value());
  }
}

TEST_CASE("what is seen of a compiler is bounded") {
  const LuajitLayout layout = jit_layout_of(true);
  const LuajitLua lua(layout);
  JitWindow memory;
  put_main_thread(memory, layout);
  put_parameters(memory);
  JitWatcher watcher(std::make_unique<SharedWindow>(memory), 1, lua, jit_G, system::Clock::now());
  watcher.look();
  // A ring that has other places at each look.
  for (std::size_t look = 0; look < 200; ++look) {
    for (std::size_t slot = 0; slot < jit_layout::penalty_slots; ++slot)
      put_penalty(memory, layout, slot, {0x1000000 + 4 * (look * jit_layout::penalty_slots + slot), 72, 8});
    watcher.look();
  }
  const JitKnowledge& seen = watcher.knowledge();
  CHECK(seen.attempts.size() == JitKnowledge::most_attempts);
  CHECK(seen.events.size() <= JitKnowledge::most_events);
  CHECK(seen.flushes == 0);
  // One place with ever other reasons.
  for (unsigned reason = 0; reason < 200; ++reason) {
    put_penalty(memory, layout, 0, {0x1000000, 72 + reason, reason});
    watcher.look();
  }
  for (const auto& [start, attempts] : seen.attempts) CHECK(attempts.aborts.size() <= JitKnowledge::most_aborts);
}
