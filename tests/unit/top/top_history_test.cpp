// What the key `o` of top writes, and that it does not grow without end.

#include "top/top_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "input/raw_reader.h"
#include "top_samples.h"

namespace luaspy::top_history_test {
namespace {

Tick tick_at(std::int64_t number) { return {number * 10 * ms, 10 * ms}; }

FramedSample of_function(std::int64_t number) { return sample_of({lua(fmt::format("f{}", number), "many.lua", 1, 1)}); }

const ThreadInfo worker = thread_info(1, 7, "worker"), sleeper = thread_info(1, 8, "sleeper");

class Framed : private OwnTables, public TopHistory {
 public:
  explicit Framed(std::size_t most_bytes = usual_bytes) : TopHistory(tables, Metadata{}, most_bytes) {}
  void add(const ThreadInfo& thread, const Tick& tick, const FramedSample& sample) {
    TopHistory::add(tables.threads.intern(thread), tick, numbered(tables.stacks, sample));
  }
};

Profile read(TopHistory& history) {
  std::istringstream in(history.recording());
  Result<Profile> profile = read_raw(in, ViewOptions());
  REQUIRE(profile);
  return std::move(*profile);
}

std::vector<std::string> innermost_names(const Profile& profile) {
  std::vector<std::string> names;
  for (const auto& [stack, amount] : profile.stack_counts())
    names.push_back(profile.frames()[profile.stack(stack).back()].name);
  return names;
}

}  // namespace

TEST_CASE("the history of top has every sample", "[top]") {
  Framed history;
  for (int i = 1; i <= 100; ++i)
    history.add(worker, tick_at(i), of_function(i % 3)), history.advance(i, i * 10 * ms, CpuUse());
  history.add_idle(5);
  const Profile profile = read(history);
  CHECK(profile.samples() == 100);
  CHECK(profile.idle() == 5);
  CHECK(profile.about.ticks == 100);
  CHECK(profile.about.duration_ns == 1000 * ms);
  CHECK(innermost_names(profile).size() == 3);
  CHECK(read(history).samples() == 100);  // asked again, it has them still
}

TEST_CASE("in the history of top, a number that is used again is another thread", "[top]") {
  Framed history;
  for (const std::uint64_t program : {std::uint64_t{1}, std::uint64_t{2}}) {
    const ThreadInfo thread = {7, "lua", 7, program == 1 ? "lua a.lua" : "lua b.lua", program, 100};
    history.add(thread, tick_at(static_cast<std::int64_t>(program)), of_function(1));
  }
  const Profile profile = read(history);
  REQUIRE(profile.threads().size() == 2);
  CHECK(profile.threads()[0].process == "lua a.lua");
  CHECK(profile.threads()[1].process == "lua b.lua");
}

TEST_CASE("the history of top begins anew", "[top]") {
  Framed history;
  FramedSample asleep = of_function(1000);
  asleep.state = Sample::State::sleeping;
  history.add(sleeper, tick_at(1), asleep);
  history.add(worker, tick_at(1), of_function(1));
  history.advance(1, 10 * ms, CpuUse());
  history.begin_anew();
  history.add(sleeper, tick_at(2), asleep);
  history.add(worker, tick_at(2), of_function(2));
  history.advance(2, 20 * ms, CpuUse());
  const Profile profile = read(history);
  CHECK(profile.samples() == 2);
  CHECK(profile.about.ticks == 1);
  CHECK(profile.about.duration_ns == 10 * ms);
  std::vector<std::string> names = innermost_names(profile);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"f1000", "f2"});
  std::int64_t first = -1;
  profile.timeline(0).for_each([&](const Timeline::Run& run) { first = run.start_ns; });
  CHECK(first == 0);  // not where the first history began
}

TEST_CASE("the history of top does not grow without end", "[top]") {
  Framed history(1 << 18);
  std::size_t most = 0;
  const int count = 50'000;
  for (int i = 1; i <= count; ++i) {
    history.add(thread_info(1, 7 + i / 1000, "worker"), tick_at(i), of_function(i));
    history.advance(i, i * 10 * ms, CpuUse());
    if (i % 500 == 0) most = std::max(most, history.recording().size());
  }
  CHECK(most < 600'000);  // all of them take 2 MB
  const Profile profile = read(history);
  CHECK(most > 30'000);  // it does not begin anew all the time
  CHECK(profile.samples() > 0);
  CHECK(profile.samples() < count);
  CHECK(profile.about.ticks == profile.samples());
  CHECK(innermost_names(profile).size() == static_cast<std::size_t>(profile.samples()));  // and nothing else is written
}

}  // namespace luaspy::top_history_test
