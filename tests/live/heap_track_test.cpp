// The size of a heap and the collector's cycles, against what the program itself says.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <regex>

#include "attach/target.h"
#include "input/raw_reader.h"
#include "stack/stack_reader.h"
#include "support/harness.h"

namespace luaspy::live::live_heap_track_test {
namespace {

// All that was sampled of a process, until it ended or as the options say.
Profile recorded(const Running& process, const Words& options) {
  const Folder folder;
  const std::string file = folder.path("heap.luaspy");
  const Finished finished = luaspy(Words{"record", "-r", "200", "-o", file} + options +
                                   Words{"--pid", std::to_string(process.pid())});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  std::ifstream in(file, std::ios::binary);
  Result<Profile> profile = read_raw(in, {});
  REQUIRE(profile);
  return std::move(*profile);
}

// Notes what is read of another memory on its own, not in a batch.
class Noting : public Memory {
 public:
  explicit Noting(const Memory& from) : from_(from) {}
  bool read(Address address, std::span<std::byte> into) const override {
    singles.push_back(address);
    return from_.read(address, into);
  }
  void read_batch(std::span<Request> requests) const override { from_.read_batch(requests); }

  mutable std::vector<Address> singles;

 private:
  const Memory& from_;
};

}  // namespace

TEST_CASE("the heap is as large as the program says, and its collections are counted", "[heap_track][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                           "debian-lua5.4-bookworm", "debian-lua5.5-sid", "debian-luajit-bookworm"})));
  Running running(target(name).command + Words{workload("heap.lua"), "1.5", "30"});
  running.read_until("READY");
  const Profile profile = recorded(running, {"--max-stopped", "100"});
  CHECK(running.wait() == 0);
  const std::string said = running.rest();
  INFO(name << ", which says: " << said);
  long long first = 0, last = 0;
  int collected = 0;
  REQUIRE(std::sscanf(said.c_str(), "from %lld to %lld bytes, collected %d times", &first, &last, &collected) == 3);
  REQUIRE(collected >= 30);
  REQUIRE(profile.heaps.states().size() == 1);
  const HeapTrack& track = profile.heaps.states().front().track;
  // What it says is a string, too. LuaJIT makes machine code of the loops, whose memory it counts.
  const std::int64_t besides = name == luajit ? 64 << 10 : 1 << 10;
  CHECK(std::abs(track.points().back().last - last) <= besides);
  const HeapSummary summary = track.summary(profile.about.duration_ns).value();
  CHECK(summary.most >= last - besides);
  CHECK(summary.least < last);
  // There are some 10 ticks between two collections. A part of them may be over when luaspy begins.
  CHECK(track.points().back().cycles <= collected);
  CHECK(track.points().back().cycles >= collected / 3);
  REQUIRE(summary.growth);
  CHECK(*summary.growth > 0);
}

TEST_CASE("a heap of which nothing runs has no value", "[heap_track]") {
  Running sleeper(lua({"-e", "print('READY') io.flush() io.read()"}));
  sleeper.read_until("READY");
  const Profile profile = recorded(sleeper, {"--idle", "-d", "0.5"});
  CHECK(profile.samples() > 0);
  CHECK(profile.heaps.empty());
}

TEST_CASE("the heap of a subprocess that has ended counts as nothing", "[heap_track]") {
  const Folder folder;
  const std::string script = folder.write(
      "one.lua", "local c, t = os.clock(), {} for i = 1, 1e5 do t[i] = {i} end while os.clock() - c < 1.5 do end\n");
  std::string command;
  for (const std::string& word : lua({script})) command += "'" + word + "' ";
  const std::string file = folder.path("heap.luaspy");
  const Finished finished = luaspy({"record", "-o", file, "--", "sh", "-c", command + "; " + command});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  std::ifstream in(file, std::ios::binary);
  const Result<Profile> profile = read_raw(in, {});
  REQUIRE(profile);
  const auto& states = profile->heaps.states();
  REQUIRE(states.size() == 2);
  CHECK(states[0].state.pid != states[1].state.pid);
  constexpr std::int64_t large = 5'000'000;
  for (const HeapTracks::Of& heap : states) CHECK(heap.track.summary(0)->most > large);
  CHECK(states[0].track.points().back().last == 0);
  CHECK(profile->heaps.total().summary(0)->most < 2 * large + large);
}

TEST_CASE("the heap is told by record, report and top, and is in the formats", "[heap_track]") {
  const Folder folder;
  const std::string file = folder.path("heap.luaspy");
  const Finished record = luaspy(Words{"record", "-o", file, "--"} + lua({workload("heap.lua"), "2", "10"}));
  INFO(record.err);
  REQUIRE(record.status == 0);
  const std::regex line("\n  Lua heap: [12]\\.[0-9] MiB at the end, .* to .*, \\+.*/s, at least .* cycles/s\n");
  CHECK(std::regex_search(record.err, line));
  const Finished report = luaspy({"report", file});
  CHECK(std::regex_search(report.out, line));
  const Finished trace = luaspy({"report", file, "-f", "chrometrace", "-o", "-"});
  CHECK(trace.out.find("\"name\":\"Lua heap\",\"args\":{\"bytes\":") != std::string::npos);
  Running program(lua({workload("heap.lua"), "30", "300"}));
  program.read_until("READY");
  const Finished top = luaspy(
      {"top", "--batch", "--count", "2", "--interval", "1", "--pid", std::to_string(program.pid())});
  INFO(top.out);
  CHECK(std::regex_search(top.out, std::regex("\n# Lua heap [0-9.]+ [KM]iB, \\+.*/s, at least .* cycles/s\n")));
}

// What the last look needed is read in one batch, so only the first look has to read the page of the
// global_State on its own.
TEST_CASE("the heap takes no read of its own", "[heap_track]") {
  const std::string name = GENERATE(lua54, luajit);
  Running running(lua({"-e", "print('READY') io.flush() local t = {} while true do t = {t[1]} end"}, name));
  running.read_until("READY");
  Result<Process> process = Process::open(running.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  const Noting memory(target.memory());
  StackTable stacks;
  StackReader reader(target.process(), memory, stacks, {}, {});
  StackReader::Prediction predicted;
  StackReader::Look look(memory);
  constexpr int looks = 200;
  int with_heap = 0, with_own_read = 0;
  for (int i = 0; i < looks; ++i) {
    memory.singles.clear();
    {
      Stop stop(target, running.pid());
      REQUIRE(stop.outcome() == Stop::Outcome::stopped);
      REQUIRE(reader.read(look, stop.registers(), predicted, true));
    }
    const std::vector<Address> singles = memory.singles;
    reader.read_after(look, predicted);
    const StackReader::Finished* const finished = reader.finish(look, predicted);
    if (finished == nullptr || finished->sample.heaps.size() != 1) continue;
    ++with_heap;
    const Address page = finished->sample.heaps[0].G / Snapshot::page_size;
    with_own_read += std::ranges::any_of(singles, [&](Address at) { return at / Snapshot::page_size == page; });
  }
  INFO(name << ": " << with_heap << " looks with a heap, " << with_own_read << " with a read of its own");
  CHECK(with_heap > looks * 3 / 4);
  CHECK(with_own_read <= looks / 20);
}

}  // namespace luaspy::live::live_heap_track_test
