// Which samples --slower keeps, and what it says of them.

#include "recording/slow_requests.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace luaspy::slow_requests_test {
namespace {

constexpr std::int64_t wall_ms = 1'700'000'000'000, ms = 1'000'000;

struct Got : SampleSink {
  EventTables tables;
  std::vector<std::string> all;  // "AT LABEL", "AT -" for what is left out, "AT end", "AT waits: LABEL" of each group
  void add(ThreadId, const Tick& tick, const Sample& sample) override {
    const std::string at = std::to_string(tick.at_ns / ms) + ' ';
    const std::string* const label = tables.labels.find(sample.labels, "slow");
    all.push_back(at + (sample.loss == Loss::left_out ? "-" : label != nullptr ? *label : ""));
  }
  void add_suspended(const SuspendedLook& look) override {
    std::string text = std::to_string(look.at_ns / ms) + " waits:";
    for (const SuspendedGroup& group : look.groups) {
      const std::string label = *tables.labels.find(group.labels, "slow");
      text += ' ' + label.substr(0, label.find(", began at"));
    }
    all.push_back(text);
  }
  void end(int, const Tick& tick) override { all.push_back(std::to_string(tick.at_ns / ms) + " end"); }
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t) override {}
};

struct Run {
  Got got;
  SlowRequests slow{got, got.tables, 200};
  const ThreadId thread = got.tables.threads.intern({.tid = 7, .name = "", .process = ""}),
                 other = got.tables.threads.intern({.tid = 8, .name = "", .pid = 8, .process = ""});

  Run() { slow.begin_at(wall_ms); }
  void sample(std::int64_t at_ms, std::uint64_t id, const std::string& name, std::int64_t begun_ms = 0,
              bool of_other = false, bool is_part = false) {
    Sample sample;
    sample.labels = got.tables.labels.intern({{"request", name}});
    sample.request = {id, begun_ms, is_part};
    slow.add(of_other ? other : thread, {at_ms * ms, ms, 1}, sample);
  }
  // Coroutines that wait, each for one of the requests; 0: for none.
  void look(std::int64_t at_ms, const std::vector<std::uint64_t>& ids, int pid = 0) {
    SuspendedLook look{.at_ns = at_ms * ms, .pid = pid};
    for (const std::uint64_t id : ids) {
      const LabelsId labels = got.tables.labels.intern(
          {{"request", id == 0 ? "" : std::string(1, char('a' + id - 1))}});
      look.groups.push_back({.labels = labels, .request = {id, 0, false}});
    }
    slow.add_suspended(look);
  }
  // Without the time of day, which is that of where the test runs.
  std::vector<std::string> end() {
    slow.finish();
    for (std::string& each : got.all) each = each.substr(0, each.find(", began at"));
    return got.all;
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("--slower keeps all samples of a request that was seen late enough, in their order", "[unit]") {
  Run run;
  run.sample(10, 1, "a");
  run.sample(20, 2, "b");
  run.sample(30, 0, "(no request)");
  run.sample(150, 2, "b");
  run.sample(250, 1, "a");
  run.sample(260, 3, "c");
  run.slow.end(8, {270 * ms, 0, 0});
  run.sample(300, 1, "a");
  CHECK(run.got.all.empty());
  CHECK(run.end() ==
        Lines{"10 a, 290 ms", "20 -", "30 -", "150 -", "250 a, 290 ms", "260 -", "270 end", "300 a, 290 ms"});
  CHECK(run.slow.text() == "1 of 3 requests that were seen took 200 ms or longer");
}

TEST_CASE("--slower believes a server that says when a request began, if it can be", "[unit]") {
  Run run;
  run.sample(10, 1, "waited", wall_ms - 300);
  run.sample(20, 2, "of tomorrow", wall_ms + 86'400'000);
  run.sample(30, 3, "of last year", wall_ms - 31'536'000'000);
  run.sample(40, 4, "young", wall_ms - 100);
  CHECK(run.end() == Lines{"10 waited, 310 ms", "20 -", "30 -", "40 -"});
}

TEST_CASE("--slower calls a request by its own name, not by that of a part of it", "[unit]") {
  Run run;
  run.sample(10, 1, "sub", 0, false, true);
  run.sample(20, 1, "main");
  run.sample(250, 1, "sub", 0, false, true);
  run.sample(260, 2, "other sub", wall_ms, false, true);
  CHECK(run.end() == Lines{"10 main, 240 ms", "20 main, 240 ms", "250 main, 240 ms", "260 other sub, 260 ms"});
}

TEST_CASE("--slower keeps processes apart, whose requests may lie at the same address", "[unit]") {
  Run run;
  run.sample(10, 1, "a");
  run.sample(220, 1, "b", 0, true);
  run.sample(230, 1, "b", 0, true);
  CHECK(run.end() == Lines{"10 -", "220 -", "230 -"});
  CHECK(run.slow.text() == "0 of 2 requests that were seen took 200 ms or longer");
}

TEST_CASE("--slower keeps the coroutines that wait for a slow request, and sees by them that it is one", "[unit]") {
  Run run;
  run.sample(10, 1, "a");
  run.sample(20, 2, "b");
  run.look(100, {1, 2, 0, 3});
  run.look(210, {1, 0, 3}, 8);  // the same addresses in another process
  run.look(220, {1, 3});
  run.sample(230, 4, "d");
  CHECK(run.end() ==
        Lines{"10 a, 210 ms", "20 -", "100 waits: a, 210 ms", "210 waits:", "220 waits: a, 210 ms", "230 -"});
  CHECK(run.slow.text() == "1 of 6 requests that were seen took 200 ms or longer");
  Run of_waits;  // one that never works
  of_waits.look(0, {3});
  of_waits.look(200, {3});
  CHECK(of_waits.end() == Lines{"0 waits: c, 200 ms", "200 waits: c, 200 ms"});
}

TEST_CASE("--slower holds a bounded number of coroutines", "[unit]") {
  Run run;
  const std::vector<std::uint64_t> many(SlowRequests::most_held / 4, 1);
  for (std::int64_t i = 0; i < 5; ++i) run.look(i, many);
  CHECK(run.got.all == Lines{"0 waits:", "1 waits:"});
}

TEST_CASE("--slower holds a bounded number of samples", "[unit]") {
  Run run;
  const auto most = static_cast<std::int64_t>(SlowRequests::most_held);
  run.sample(0, 1, "early");
  for (std::int64_t i = 1; i <= most; ++i) run.sample(i, 2, "long");
  CHECK(run.got.all == Lines{"0 -"});
  run.sample(most + 1, 1, "early");
  CHECK(run.got.all.back().starts_with("1 long, over "));
  const std::string value = run.got.all.back().substr(2);
  CHECK(run.end().size() == SlowRequests::most_held + 2);
  CHECK(run.got.all.back() == std::to_string(most + 1) + " -");
  // It is one request to its end.
  for (std::size_t i = 1; i + 1 < run.got.all.size(); ++i)
    REQUIRE(run.got.all[i] == std::to_string(i) + ' ' + value.substr(0, value.find(", began at")));
  CHECK(run.slow.text() == "1 of 3 requests that were seen took 200 ms or longer");
}

}  // namespace luaspy::slow_requests_test
