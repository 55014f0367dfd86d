#include "agent/flight_recorder.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <future>

#include "agent/snapshot.h"
#include "input/raw_reader.h"

namespace luaspy::flight_recorder_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t ms = 1'000'000;

ThreadInfo kept_thread(int pid, int tid, std::uint64_t program) {
  return {tid, "worker", pid, "web --port 80", program, 0};
}

Sample kept_sample(EventTables& tables, const std::string& function) {
  Sample sample;
  sample.stack = tables.stacks.intern(Stack{{Frame::Kind::lua, function, "a.lua", 1, 1}});
  return sample;
}

FlightRecorder::Options options_with(system::Clock::duration keeps, std::size_t most_bytes) {
  const auto describe = [](const KeptPart::Key&, Metadata& about) { about.executable = "/usr/bin/web"; };
  return {keeps, most_bytes, describe};
}

// What the recorder has, without another thread that waits for look().
KeptParts parts_of(FlightRecorder& recorder, const LoopCounts& counts = {}) {
  auto parts = std::async(std::launch::async, [&] { return recorder.parts(); });
  while (parts.wait_for(1ms) != std::future_status::ready) recorder.look(counts);
  return parts.get();
}

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "luaspy-snapshots-XXXXXX").string();
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Profile read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Result<Profile> profile = read_raw(in, {});
  REQUIRE(profile.has_value());
  return std::move(*profile);
}

}  // namespace

TEST_CASE("a snapshot is a recording of each process, with the states and times of its threads", "[unit]") {
  EventTables tables;
  FlightRecorder recorder(tables, options_with(10min, 1 << 20));
  const system::Clock::time_point start = system::Clock::now();
  recorder.begin(start);
  const ThreadId web = tables.threads.intern(kept_thread(10, 10, 1)),
                 pool = tables.threads.intern(kept_thread(10, 11, 1));
  const ThreadId other = tables.threads.intern(kept_thread(20, 20, 2));
  recorder.add(web, {0, 50 * ms}, kept_sample(tables, "hot"));
  recorder.add(other, {0, 50 * ms}, kept_sample(tables, "elsewhere"));
  Sample asleep = kept_sample(tables, "waits");
  asleep.state = Sample::State::sleeping;
  recorder.add(pool, {50 * ms, 50 * ms}, asleep);
  recorder.add_idle(pool, 7);
  LoopCounts counts;
  counts.ticks = 12;
  REQUIRE(parts_of(recorder, counts).size() == 1);
  // The tables are others from now on.
  tables = {};
  recorder.tables_renewed();
  const ThreadId again = tables.threads.intern(kept_thread(10, 10, 1));
  Sample with_heap = kept_sample(tables, "cold");
  with_heap.heaps = {{0x1000, 12345, CollectorPhase::pause, 1}};
  recorder.begin(start + 1s);
  recorder.add(again, {0, 50 * ms}, with_heap);
  Sample lost;
  lost.loss = Loss::not_stopped;
  recorder.add(again, {50 * ms, 50 * ms}, lost);

  const Folder folder;
  const KeptParts parts = parts_of(recorder);
  REQUIRE(parts.size() == 2);
  const Result<std::vector<std::string>> paths = write_snapshot(parts, 10, {folder.path});
  REQUIRE(paths.has_value());
  REQUIRE(paths->size() == 1);
  CHECK(paths->front().find("/luaspy-web-10-") != std::string::npos);
  const Profile profile = read(paths->front());
  CHECK(profile.samples() == 3);
  CHECK(profile.idle() == 7);
  CHECK(profile.losses(Loss::not_stopped) == 1);
  CHECK(profile.threads().size() == 2);
  CHECK((profile.about.pid == 10 && profile.about.command == "web --port 80" && profile.about.complete));
  CHECK(profile.about.ticks == 12);
  CHECK(profile.about.executable == "/usr/bin/web");
  std::map<std::string, std::pair<Sample::State, std::int64_t>> seen;
  for (const auto& [situation, amount] : profile.counts()) {
    const Profile::Situation& found = profile.situations()[situation.situation];
    const FrameId frame = profile.stack(found.stack).back();
    seen[profile.frames()[frame].name] = {found.state, amount.weight};
  }
  CHECK(seen ==
        std::map<std::string, std::pair<Sample::State, std::int64_t>>{{"hot", {Sample::State::running, 50 * ms}},
                                                                      {"waits", {Sample::State::sleeping, 50 * ms}},
                                                                      {"cold", {Sample::State::running, 50 * ms}}});
  std::int64_t last_ns = 0;
  profile.timeline(0).for_each([&](const Timeline::Run& run) { last_ns = run.end_ns; });
  CHECK(std::abs(last_ns - 1000 * ms) < 60 * ms);
  REQUIRE(profile.heaps.states().size() == 1);

  CHECK(write_snapshot(parts, 0, {folder.path})->size() == 2);
  CHECK(write_snapshot(parts, 30, {folder.path}).error().text == "No samples are kept of process 30.");
  const Result<std::vector<std::string>> too_many = write_snapshot(parts, 0, {folder.path, 3});
  CHECK(too_many.error().text.find("has 3 snapshots already") != std::string::npos);
  CHECK_FALSE(write_snapshot(parts, 0, {folder.path + "/nowhere"}).has_value());
}

TEST_CASE("what is kept of the past has a bound in time and in memory", "[unit]") {
  EventTables tables;
  const ThreadId web = tables.threads.intern(kept_thread(10, 10, 1));
  constexpr std::size_t most = 1 << 20;
  FlightRecorder recorder(tables, options_with(10min, most));
  recorder.begin(system::Clock::now());
  bool was_full = false;
  for (int i = 0; i < 60'000; ++i) {  // each with a stack of its own
    recorder.add(web, {i * ms, ms}, kept_sample(tables, "function " + std::to_string(i)));
    recorder.look({});
    REQUIRE(recorder.size().bytes <= static_cast<std::int64_t>(most));
    was_full |= recorder.size().is_full;
  }
  CHECK(was_full);
  const KeptParts parts = parts_of(recorder);
  CHECK(parts.size() >= 8);
  const Folder folder;
  const Profile profile = read(write_snapshot(parts, 10, {folder.path})->front());
  CHECK((profile.samples() > 10'000 && profile.samples() < 60'000));

  constexpr auto keeps = 500ms;  // so long that a busy machine does not take it for the past at once
  FlightRecorder short_one(tables, options_with(keeps, most));
  short_one.begin(system::Clock::now());
  short_one.add(web, {0, ms}, kept_sample(tables, "old"));
  CHECK(parts_of(short_one).size() == 1);
  const system::Clock::time_point end = system::Clock::now() + keeps + 3ms;
  while (system::Clock::now() < end) {
  }
  CHECK(parts_of(short_one).empty());
}

}  // namespace luaspy::flight_recorder_test
