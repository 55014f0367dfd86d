#include "agent/trigger.h"

#include <catch2/catch.hpp>

namespace luaspy::trigger_test {
namespace {

using namespace std::chrono_literals;
using Clock = system::Clock;

constexpr std::int64_t second = 1'000'000'000;

struct Watched {
  EventTables tables;
  std::vector<std::pair<int, std::string>> acts;
  std::int64_t cpu_ns = 0;
  bool takes = true;
  Clock::time_point start = Clock::now();
  TriggerWatch watch;
  ThreadId thread = tables.threads.intern({11, "worker", 10, "web", 1, 0});

  explicit Watched(const std::string& when)
      : watch(
            tables, {parse_trigger(when).value()}, 60s,
            [this](int pid, const std::string& why) {
              if (takes) acts.emplace_back(pid, why);
              return takes;
            },
            [this](int) { return std::optional(cpu_ns); }) {
    watch.begin(start);
  }

  // In function `name`, called by the main chunk, at that line of it.
  Sample sample(const std::string& name, int defined, int line) {
    Sample sample;
    sample.stack = tables.stacks.intern(
        Stack{{Frame::Kind::lua, "main chunk", "a.lua", 0, 9}, {Frame::Kind::lua, name, "a.lua", defined, line}});
    return sample;
  }
  void add(int at_s, const Sample& sample) {
    watch.add(thread, {at_s * second, second}, sample);
    watch.test(start + std::chrono::seconds(at_s));
  }
};

}  // namespace

TEST_CASE("what a trigger may be", "[unit]") {
  CHECK((parse_trigger("cpu > 90")->kind == Trigger::Kind::cpu && parse_trigger("cpu>90%")->limit == 90));
  CHECK((parse_trigger(" heap > 1.5G ")->kind == Trigger::Kind::heap &&
         parse_trigger("heap > 1.5G")->limit == 1.5 * (1 << 30)));
  CHECK((parse_trigger("looks-stuck 2m")->kind == Trigger::Kind::looks_stuck &&
         parse_trigger("looks-stuck 2m")->limit == 120));
  CHECK(parse_trigger(" heap > 1G ")->text == "heap > 1G");
  for (const char* const wrong :
       {"", "cpu", "cpu > ", "cpu < 5", "cpu > -1", "cpu > 0", "cpu > nan", "cpu > 1e99", "cpu > 5 5", "heap > 5s",
        "looks-stuck > 5", "looks-stuck 5G", "rss > 5", "cpu > 90\x1b"}) {
    INFO(wrong);
    const Result<Trigger> trigger = parse_trigger(wrong);
    REQUIRE_FALSE(trigger.has_value());
    CHECK(trigger.error().text.find("it has to be 'cpu > PERCENT'") != std::string::npos);
    CHECK(trigger.error().text.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("cpu > 90: five seconds of more than nine tenths of a CPU, and not again soon", "[unit]") {
  Watched watched("cpu > 90");
  for (int s = 0; s < 5; ++s, watched.cpu_ns += second) watched.add(s, watched.sample("f", 1, 1));
  CHECK(watched.acts.empty());
  for (int s = 5; s < 30; ++s, watched.cpu_ns += second) watched.add(s, watched.sample("f", 1, 1));
  REQUIRE(watched.acts.size() == 1);
  CHECK(watched.acts[0] == std::pair<int, std::string>{10, "cpu > 90"});
  for (int s = 30; s < 70; ++s, watched.cpu_ns += second) watched.add(s, watched.sample("f", 1, 1));
  CHECK(watched.acts.size() == 2);

  Watched less("cpu > 90");
  for (int s = 0; s < 20; ++s, less.cpu_ns += second * 8 / 10) less.add(s, less.sample("f", 1, 1));
  CHECK(less.acts.empty());
}

TEST_CASE("heap > 1M: of all Lua states of a process that have run lately", "[unit]") {
  Watched watched("heap > 1M");
  Sample sample = watched.sample("f", 1, 1);
  sample.heaps = {{0x1000, 700'000, CollectorPhase::pause, 0}};
  watched.add(1, sample);
  CHECK(watched.acts.empty());
  sample.heaps = {{0x2000, 700'000, CollectorPhase::pause, 0}};
  watched.takes = false;  // another one is being written
  watched.add(2, sample);
  watched.takes = true;
  watched.add(3, sample);
  CHECK(watched.acts.size() == 1);

  Watched gone("heap > 1M");
  sample.heaps = {{0x1000, 700'000, CollectorPhase::pause, 0}};
  gone.add(1, sample);
  sample.heaps = {{0x2000, 700'000, CollectorPhase::pause, 0}};
  gone.add(90, sample);  // the first may be closed
  CHECK(gone.acts.empty());
}

TEST_CASE("looks-stuck 5s: in the same functions, at any line, without a pause", "[unit]") {
  Watched watched("looks-stuck 5s");
  for (int s = 0; s < 5; ++s) watched.add(s, watched.sample("f", 1, s));
  CHECK(watched.acts.empty());
  watched.add(5, watched.sample("another name", 1, 3));
  CHECK(watched.acts.size() == 1);

  Watched changes("looks-stuck 5s");
  for (int s = 0; s < 20; ++s) changes.add(s, changes.sample("f", s % 4 == 0 ? 1 : 2, 1));
  Watched sleeps("looks-stuck 5s");
  for (int s = 0; s < 20; ++s) {
    sleeps.add(s, sleeps.sample("f", 1, 1));
    if (s % 4 == 0) sleeps.watch.add_idle(sleeps.thread, 1);
  }
  Watched native("looks-stuck 5s");
  Sample in_c;
  in_c.stack = native.tables.stacks.intern(Stack{{Frame::Kind::native, "main", "a.out", 0, 0}});
  for (int s = 0; s < 20; ++s) native.add(s, in_c);
  CHECK((changes.acts.empty() && sleeps.acts.empty() && native.acts.empty()));
}

}  // namespace luaspy::trigger_test
