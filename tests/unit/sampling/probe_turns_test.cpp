#include "sampling/probe_turns.h"

#include <catch2/catch.hpp>
#include <string>

#include "support/fake_target.h"

namespace luaspy::probe_turns_test {
namespace {

using fake::at_ms;
using fake::Clock;

// It takes the time that it is given, and writes down each turn.
class FakeProbe : public Probe {
 public:
  FakeProbe(char name, Clock::time_point& now, std::string& turns) : name_(name), now_(now), turns_(turns) {}

  Result<void> run_until(Clock::time_point until) override {
    turns_ += name_;
    if (until > now_) lengths.push_back(until - now_);
    now_ = std::max(now_, std::min(until, ends_at));
    if (fails) return Error{Cause::internal, "no"};
    return {};
  }
  bool ended() const override { return now_ >= ends_at; }
  void forget(SampledProcess& process) override { forgotten.push_back(&process); }

  std::vector<Clock::duration> lengths;
  Clock::time_point ends_at = Clock::time_point::max();
  bool fails = false;
  std::vector<SampledProcess*> forgotten;

 private:
  char name_;
  Clock::time_point& now_;
  std::string& turns_;
};

struct Two {
  Two() {
    probes.add(&first);
    probes.add(&second);
  }
  Clock::time_point now = at_ms(0);
  std::string turns;
  FakeProbe first{'a', now, turns}, second{'b', now, turns};
  ProbeTurns probes{1, [this] { return now; }};
};

}  // namespace

TEST_CASE("a probe that is alone has all of the time in one turn", "[unit]") {
  Clock::time_point now = at_ms(0);
  std::string turns;
  FakeProbe only('a', now, turns);
  ProbeTurns probes(1, [&] { return now; });
  probes.add(&only);
  REQUIRE(probes.run_until(at_ms(5000)));
  CHECK(turns == "a");
  CHECK(only.lengths == std::vector<Clock::duration>{std::chrono::seconds(5)});
}

TEST_CASE("two probes take turns of 50 to 200 ms, and have the same time", "[unit]") {
  Two two;
  REQUIRE(two.probes.run_until(at_ms(100'000)));
  CHECK(two.now == at_ms(100'000));
  Clock::duration sums[2] = {};
  for (const FakeProbe* const probe : {&two.first, &two.second}) {
    for (const Clock::duration length : probe->lengths) {
      CHECK(length <= ProbeTurns::longest);
      sums[probe == &two.second] += length;
    }
  }
  CHECK(two.turns.substr(0, 6) == "ababab");
  CHECK(two.turns.back() == 'a');  // what is known at the end
  CHECK(sums[0] + sums[1] == std::chrono::seconds(100));
  CHECK(sums[0] < sums[1] * 1.1);
  CHECK(sums[1] < sums[0] * 1.1);
  const auto shorter = [](Clock::duration length) { return length < ProbeTurns::shortest; };
  CHECK(std::ranges::count_if(two.first.lengths, shorter) + std::ranges::count_if(two.second.lengths, shorter) <= 1);
}

TEST_CASE("a probe has turns as long as somebody else says", "[unit]") {
  Clock::time_point now = at_ms(0);
  std::string turns;
  FakeProbe first('a', now, turns), second('b', now, turns);
  ProbeTurns probes(1, [&] { return now; });
  Clock::duration asked = std::chrono::seconds(1);
  probes.add({&first, [&] { return std::exchange(asked, asked * 2); }});
  probes.add(&second);
  REQUIRE(probes.run_until(at_ms(5000)));
  CHECK(turns == "ababa");
  REQUIRE(first.lengths.size() == 3);
  CHECK(first.lengths[0] == std::chrono::seconds(1));
  CHECK(first.lengths[1] == std::chrono::seconds(2));
  CHECK(first.lengths[2] < std::chrono::seconds(2));  // the end came before
  for (const Clock::duration length : second.lengths) CHECK(length <= ProbeTurns::longest);
}

TEST_CASE("the recording ends when one of its probes has ended", "[unit]") {
  Two two;
  two.second.ends_at = at_ms(1000);
  REQUIRE(two.probes.run_until(Clock::time_point::max()));
  CHECK(two.now == at_ms(1000));
  CHECK(two.turns.ends_with("ba"));
}

TEST_CASE("a probe that cannot look ends the recording with its Error", "[unit]") {
  Two two;
  two.second.fails = true;
  const Result<void> ran = two.probes.run_until(at_ms(5000));
  REQUIRE_FALSE(ran);
  CHECK(ran.error().text == "no");
  CHECK(two.turns == "ab");
}

TEST_CASE("a process that is dropped is forgotten by each probe", "[unit]") {
  Two two;
  EventTables tables;
  fake::FakeProcess process(tables);
  two.probes.forget(process);
  CHECK(two.first.forgotten == std::vector<SampledProcess*>{&process});
  CHECK(two.second.forgotten == std::vector<SampledProcess*>{&process});
}

}  // namespace luaspy::probe_turns_test
