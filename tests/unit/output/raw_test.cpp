// The raw recording: everything that was sampled can be read again, and from any file the reader
// reads the valid part and does nothing else.

#include <fmt/format.h>
#include <malloc.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "input/raw_reader.h"
#include "output/format.h"
#include "output/raw.h"
#include "output/write_options.h"
#include "profile/raw_format.h"
#include "support/dice.h"
#include "support/raw_file.h"

namespace luaspy::raw_test {
namespace {

constexpr std::int64_t ms = 1'000'000;

Frame lua(std::string name, std::string file, int defined, int line, bool near = false) {
  return {Frame::Kind::lua, std::move(name), std::move(file), defined, line, near};
}

// Processes samples like Recording, but without a process: each is written to a raw file and added
// to a profile.
class Recorder {
 public:
  explicit Recorder(const ViewOptions& shape = {}, Unit unit = Unit::nanoseconds)
      : profile_(true, shape.cpus),
        mode_(shape.mode),
        shaper_(shape, tables_.stacks, profile_.stacks()),
        raw_(tables_, unit, out_) {
    profile_.about.unit = unit;
  }

  std::uint32_t thread(const ThreadInfo& thread) {
    (void)tables_.threads.intern(thread);
    return profile_.index_of(thread);
  }
  void sample(std::uint32_t index, const Tick& tick, const Sample& facts, const Stack& stack) {
    const ThreadId thread{index};
    Sample sample = facts;
    std::optional<StackId> shaped;
    if (facts.loss == Loss::none) {
      sample.stack = tables_.stacks.intern(stack);
      shaped = shaper_.shaped(sample.stack, facts.vm_state, tables_.threads[thread]);
    }
    if (shaped) {
      profile_.add(index, tick, sample, *shaped);
      raw_.sample(thread, tick, sample);
    } else {
      const Loss loss = facts.loss != Loss::none ? facts.loss : Loss::left_out;
      profile_.add_lost(loss, facts.stopped_ns);
      raw_.lost(thread, tick, loss, facts.stopped_ns);
    }
  }
  static Sample lost(Loss loss, std::int64_t stopped_ns) {
    Sample sample;
    sample.loss = loss, sample.stopped_ns = stopped_ns;
    return sample;
  }
  void loss(Loss loss, std::int64_t count) { profile_.add_loss(loss, count), raw_.loss(loss, count); }
  void idle() { profile_.add_idle(), raw_.idle(1); }
  void about(const Metadata& about) {
    profile_.about = about, profile_.about.mode = name(mode_);
    raw_.about(about), raw_.flush();
  }

  Profile& profile() { return profile_; }
  std::string file() const { return out_.str(); }
  std::size_t size() { return static_cast<std::size_t>(out_.tellp()); }

 private:
  std::ostringstream out_;
  EventTables tables_;
  Profile profile_;
  Mode mode_;
  StackView shaper_;
  RawWriter raw_;
};

// Records every kind of frame, state and loss, with a flush in the middle. In bytes and objects,
// the samples of a tick have different weights.
void record_everything(Recorder& recorder) {
  const Frame main = {Frame::Kind::native, "main", "lua5.4", 0, 0}, chunk = lua("main chunk", "app/main.lua", 0, 30);
  const Frame hostile = lua("a;b<script>\\x1b[31m", "[string \"x;y...\"]", 1, 2),
              gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0};
  Frame start = {Frame::Kind::native, "_start", "lua5.4", 0, 0},
        get = {Frame::Kind::native, "luaH_get", "lua5.4", 0, 0};
  start.part = Frame::Part::start, get.part = Frame::Part::vm;
  const Frame tail = {Frame::Kind::marker, "(...tail calls...)", {}, 0, 0};
  const std::uint32_t first = recorder.thread({100, "lua5.4", 100, "lua5.4 my script.lua"}),
                      second = recorder.thread({101, "worker; \"two\"", 102, "other", 2, 4711}),
                      // after an exec, and after the end of the thread before
      another = recorder.thread({101, "worker", 102, "yet another", 3, 4711}),
                      later = recorder.thread({101, "worker", 102, "yet another", 3, 4712});
  std::mt19937 random(7);
  Metadata about = {"0.1.0",
                    "lua5.4 \"my script\".lua",
                    "/usr/bin/lua5.4",
                    100,
                    {"Lua 5.4.4", "LuaJIT 2.1"},
                    true,
                    "merged",
                    99.5,
                    10,
                    1'700'000'000,
                    0,
                    0,
                    false,
                    {7'000'000'000, 300'000'000, 2'000'000'000, 0.25},
                    6'500'000'000,
                    recorder.profile().about.unit};
  const bool of_time = about.unit == Unit::nanoseconds;
  std::int64_t at = 0;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t passed = 10 * ms + static_cast<std::int64_t>(random() % 1000);
    at += passed;
    const std::int64_t weight = of_time ? passed : i * i * i, second_weight = of_time ? passed : 1'000'000'000LL * i;
    const Frame work = lua(i % 3 == 0 ? "function" : "work", "app/main.lua", 10, 10 + static_cast<int>(random() % 4),
                           i % 5 == 0);
    Stack stack = {start, main, chunk, work};
    stack.back().prototype = i % 5 == 1 ? 0xffff'fff0U + static_cast<std::uint32_t>(i % 2) : 0;  // functions of one
                                                                                                 // line
    if (i % 8 == 7) stack.back().name = i % 16 == 7 ? "shop.buy" : "shop.sell", stack.back().own_name = true;
    if (i % 4 == 1) stack.push_back(gsub);
    if (i % 4 == 2) stack.push_back(get);
    if (i % 17 == 16) stack = {start};
    if (i % 7 == 2) stack.insert(stack.end(), {tail, hostile});
    Sample facts;
    facts.vm_state = static_cast<VmState>(i % static_cast<int>(vm_state_count));
    facts.state = i % 6 == 5 ? Sample::State::sleeping : i % 6 == 4 ? Sample::State::waiting : Sample::State::running;
    facts.stopped_ns = facts.state == Sample::State::running ? 20'000 + i : 0;
    facts.quality = {1, i % 2, 1, 0, i % 9 == 0, 0, 0, i % 11, 0, 0, i % 13, 0, 0, i % 7 == 0, i % 5 == 0};
    recorder.sample(first, {at, weight}, i % 10 == 9 ? Recorder::lost(static_cast<Loss>(1 + i / 10), 5'000) : facts,
                    stack);
    if (i % 2 == 1) recorder.sample(second, {at, second_weight}, facts, {main, work, work, work});
    else recorder.idle();
    if (i % 30 == 28) recorder.sample(another, {at, second_weight}, facts, {main, work});
    if (i % 30 == 29) recorder.sample(later, {at, second_weight}, facts, {main, chunk});
    if (i % 20 == 10) recorder.loss(Loss::skipped, 3);
    if (i % 20 == 19) about.duration_ns = at, about.ticks = i + 1, about.complete = i == 59, recorder.about(about);
  }
}

Result<Profile> read(const std::string& file, const ViewOptions& shape = {}, const RawWindow& window = {}) {
  std::istringstream in(file);
  return read_raw(in, shape, window);
}

std::string written(const Profile& profile, const Format& format, const WriteOptions& options) {
  std::ostringstream out;
  format.write(profile, options, out);
  return out.str();
}

std::vector<std::string> payloads(const std::string& file) {
  std::vector<std::string> payloads;
  for (std::size_t at = 8; at < file.size();) {
    std::size_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size << 8 | static_cast<std::uint8_t>(file[at + i]);
    payloads.push_back(file.substr(at + 8, size));
    at += 8 + size;
  }
  return payloads;
}

std::string file_of(const std::vector<std::string>& payloads, std::uint8_t version = 2) {
  std::string file = raw_head(version);
  for (const std::string& payload : payloads) file += raw_block(payload);
  return file;
}

// Checks that the profile is valid: everything that writers do with it works.
std::int64_t looked_through(Result<Profile> profile) {
  if (!profile) return -1;
  profile->resolve_names();
  std::int64_t samples = 0;
  for (const auto& [id, amount] : profile->stack_counts()) {
    for (const FrameId frame : profile->stack(id)) CHECK(profile->frames().has(frame));
    samples += amount.samples;
  }
  CHECK(samples == profile->samples());
  for (const Format& format : formats()) {
    if (format.write != nullptr) CHECK(!written(*profile, format, {true, true}).empty() + (samples == 0) != 0);
  }
  return samples;
}

}  // namespace

TEST_CASE("from a raw recording every format is what a recording would have written", "[unit]") {
  for (const ViewOptions& shape :
       {ViewOptions{}, ViewOptions{.lines = true}, ViewOptions{.lines = true, .gc = true, .vmstate = true},
        ViewOptions{.processes = true}, ViewOptions{.mode = Mode::lua}, ViewOptions{.mode = Mode::all},
        ViewOptions{.only = "work"}, ViewOptions{.ignore = "gsub|main.lua:11"}}) {
    Recorder recorder(shape);
    record_everything(recorder);
    Profile& direct = recorder.profile();
    Result<Profile> read_again = read(recorder.file(), shape);
    REQUIRE(read_again);
    direct.resolve_names(), read_again->resolve_names();
    for (const Format& format : formats()) {
      if (format.write == nullptr) continue;
      INFO(format.name);
      for (const WriteOptions& options : {WriteOptions{shape.lines, false}, WriteOptions{shape.lines, true}})
        CHECK(written(*read_again, format, options) == written(direct, format, options));
    }
    CHECK(read_again->samples() == direct.samples());
    CHECK(read_again->weight() == direct.weight());
    CHECK(read_again->idle() == direct.idle());
    CHECK(read_again->waiting() == direct.waiting());
    REQUIRE(read_again->threads().size() == direct.threads().size());
    for (std::size_t i = 0; i < direct.threads().size(); ++i)
      CHECK(read_again->threads()[i].key() == direct.threads()[i].key());
    CHECK(read_again->stops().total_ns() == direct.stops().total_ns());
    CHECK(read_again->quality() == direct.quality());
    for (std::size_t i = 1; i < loss_count; ++i)
      CHECK(read_again->losses(static_cast<Loss>(i)) == direct.losses(static_cast<Loss>(i)));
    for (std::size_t i = 0; i < vm_state_count; ++i)
      CHECK(read_again->samples_in(static_cast<VmState>(i)) == direct.samples_in(static_cast<VmState>(i)));
    CHECK(read_again->about.luas == direct.about.luas);
    CHECK(read_again->about.lua_mapped);
    CHECK(read_again->about.rate == direct.about.rate);
    CHECK(read_again->about.ticks == direct.about.ticks);
    CHECK(read_again->about.cpu.lua_ns == direct.about.cpu.lua_ns);
    CHECK(read_again->about.cpu.other_ns == direct.about.cpu.other_ns);
    CHECK(read_again->about.cpu.unknown_ns == direct.about.cpu.unknown_ns);
    CHECK(read_again->about.cpu.system_share == direct.about.cpu.system_share);
    CHECK(read_again->about.sampled_cpu_ns == direct.about.sampled_cpu_ns);
    CHECK(read_again->about.complete);
  }
}

TEST_CASE("a raw recording of bytes or objects is read as one", "[unit]") {
  for (const Unit unit : {Unit::bytes, Unit::objects}) {
    Recorder recorder({}, unit);
    record_everything(recorder);
    Profile& direct = recorder.profile();
    Result<Profile> read_again = read(recorder.file());
    REQUIRE(read_again);
    CHECK(read_again->about.unit == unit);
    direct.resolve_names(), read_again->resolve_names();
    for (const Format& format : formats()) {
      if (format.write == nullptr) continue;
      INFO(format.name);
      CHECK(written(*read_again, format, {}) == written(direct, format, {}));
    }
    CHECK(read_again->weight() == direct.weight());
    CHECK(direct.weight() > 1'000'000'000);
    CHECK(read_again->about.ticks == 60);
  }
}

TEST_CASE("how often was looked is what a whole recording says, however many records its ticks have", "[unit]") {
  EventTables tables;
  std::ostringstream out;
  RawWriter writer(tables, Unit::nanoseconds, out);
  Metadata about;
  const auto say = [&](std::int64_t ticks, bool complete) {
    about.ticks = ticks, about.complete = complete;
    writer.about(about);
    writer.flush();
  };
  const ThreadId one = tables.threads.intern({1, "one"}), other = tables.threads.intern({2, "two"});
  const auto tick = [&](std::int64_t at) {  // the threads are looked at by turns
    writer.sample(one, {at * ms, 10 * ms}, Sample());
    writer.sample(other, {at * ms + 1, 7 * ms}, Sample());
  };
  tick(10), tick(20);
  say(3, false);
  tick(30);  // which was counted before it was written
  say(3, true);
  const Result<Profile> whole = read(out.str());
  REQUIRE(whole);
  CHECK(whole->samples() == 6);
  CHECK(whole->about.ticks == 3);
}

TEST_CASE("what a raw recording counts is known before its first sample, and never changes", "[unit]") {
  const auto about = [](const std::string& key, const std::string& value) {
    const std::string body = static_cast<char>(key.size()) + key + static_cast<char>(value.size()) + value;
    return std::string("\x01") + static_cast<char>(body.size()) + body;
  };
  const std::string sample = std::string("\x06\x02\x0a\x07", 4) + std::string("\x05\x04\x01\x01\x00\x00", 6) +
                             std::string("\x07\x03\x00\x00\x00", 5);  // 7 at 10 ns
  const std::string names = std::string("\x02\x00", 2);
  const auto unit_of = [&](const std::string& records, char version = 2) {
    const Result<Profile> profile = read(file_of({names + records}, version));
    REQUIRE(profile);
    return fmt::format("{} {}", name(profile->about.unit), profile->weight());
  };
  CHECK(unit_of(about("unit", "bytes") + sample) == "bytes 7");
  CHECK(unit_of(about("unit", "bytes") + sample + about("unit", "bytes") + sample) == "bytes 14");
  CHECK(unit_of(about("unit", "bytes") + sample + about("unit", "objects") + sample) == "bytes 7");
  CHECK(unit_of(sample + about("unit", "bytes") + sample) == "nanoseconds 0");
  // Version 1 only has time.
  CHECK(unit_of(sample, 1) == "nanoseconds 7");
  CHECK(unit_of(about("unit", "bytes") + sample, 1) == "nanoseconds 7");
  const Result<Profile> unknown = read(file_of({names + about("unit", "coroutines") + sample}));
  REQUIRE(!unknown);
  CHECK(unknown.error().cause == Cause::unsupported);
  CHECK(unknown.error().text ==
        "This raw recording counts coroutines; this luaspy knows nanoseconds, bytes, objects and samples.");
}

TEST_CASE("what waits for a CPU does not sleep in a raw recording, and is asleep for older readers", "[unit]") {
  Recorder recorder;
  const std::uint32_t thread = recorder.thread({1, "lua", 1, "lua"});
  Sample facts;
  for (const Sample::State state : {Sample::State::running, Sample::State::sleeping, Sample::State::waiting}) {
    facts.state = state;
    recorder.sample(thread, {static_cast<int>(state) * 10 * ms, 10 * ms}, facts, {lua("f", "f.lua", 1, 1)});
  }
  recorder.about({});
  const Result<Profile> profile = read(recorder.file());
  REQUIRE(profile);
  REQUIRE(profile->situations().size() == 3);
  CHECK(profile->situations()[1].state == Sample::State::sleeping);
  CHECK(profile->situations()[2].state == Sample::State::waiting);
  CHECK(profile->waiting() == 1);
  // Thread 0, asleep, stack 1; and what older readers skip.
  CHECK(payloads(recorder.file()).front().find(std::string("\x07\x04\x00\x01\x01\x01", 6)) != std::string::npos);
}

TEST_CASE("of a raw recording, a window of time and a thread can be read", "[unit]") {
  Recorder recorder;
  record_everything(recorder);
  const Result<Profile> all = read(recorder.file()), first = read(recorder.file(), {}, {.to_ns = 300 * ms}),
                        rest = read(recorder.file(), {}, {.from_ns = 300 * ms + 1});
  REQUIRE((all && first && rest));
  CHECK(first->samples() > 0);
  CHECK(first->samples() + rest->samples() == all->samples());
  CHECK(first->about.duration_ns == 300 * ms);
  CHECK(std::abs(first->about.ticks - 30) <= 1);
  const Result<Profile> by_name = read(recorder.file(), {}, {.thread = "worker"}),
                        by_number = read(recorder.file(), {}, {.thread = "101"});
  REQUIRE((by_name && by_number));
  REQUIRE(by_name->threads().size() == 3);
  for (const ThreadInfo& thread : by_name->threads()) CHECK(thread.tid == 101);
  CHECK(by_name->samples() == by_number->samples());
  CHECK(by_name->samples() == 34);
}

TEST_CASE("each beginning of a raw recording is one of its samples", "[unit]") {
  Recorder recorder;
  record_everything(recorder);
  const std::string file = recorder.file();
  const std::int64_t all = looked_through(read(file));
  std::int64_t before = -1;
  int steps = 0;
  for (std::size_t size = 0; size <= file.size(); ++size) {
    Result<Profile> part = read(file.substr(0, size));
    CHECK(part.has_value() == (size >= 8));
    if (!part) continue;
    CHECK(part->about.complete == (size == file.size()));
    CHECK(part->samples() >= before);
    steps += part->samples() != before;
    before = part->samples();
  }
  CHECK(before == all);
  CHECK(steps == 4);  // no samples at first, and one step for each flush
}

TEST_CASE("no byte that is changed in a raw recording is believed", "[unit]") {
  Recorder recorder;
  record_everything(recorder);
  const std::string file = recorder.file();
  const std::int64_t all = read(file)->samples();
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int bit : {0, 7}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      const Result<Profile> part = read(changed);
      CHECK(part.has_value() == (at >= 8));
      if (!part) continue;
      CHECK(part->samples() < all);
      CHECK(!part->about.complete);
    }
  }
}

TEST_CASE("whatever is in the blocks of a raw recording, what is read is a profile", "[unit][slow]") {
  Recorder recorder;
  record_everything(recorder);
  const std::vector<std::string> good = payloads(recorder.file());
  REQUIRE(file_of(good) == recorder.file());
  std::mt19937 random(11);
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  int changed_samples = 0;
  const std::int64_t all = read(recorder.file())->samples();
  for (int i = 0; i < rounds(1500); ++i) {
    std::vector<std::string> bad = good;
    std::string& payload = bad[any(bad.size())];
    for (std::size_t changes = 1 + any(4); changes-- > 0 && !payload.empty();) {
      const std::size_t at = any(payload.size());
      switch (any(5)) {
        case 0:
          payload[at] = static_cast<char>(random());
          break;
        case 1:
          payload[at] = static_cast<char>(0xff);
          break;
        case 2:
          payload.erase(at, 1 + any(20));
          break;
        case 3:
          payload.insert(at, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
          break;
        case 4:
          payload.insert(at, payload.substr(any(payload.size()), any(40)));
          break;
      }
    }
    changed_samples += looked_through(read(file_of(bad))) != all;
  }
  CHECK(changed_samples > rounds(500));
}

TEST_CASE("a format that leaves the choice to its reader gets whole stacks, of the same samples", "[unit]") {
  Recorder recorder;
  record_everything(recorder);
  const ViewOptions shape = {.mode = Mode::lua, .only = "main"};
  ViewOptions whole = shape, all = {.mode = Mode::all, .lines = true};
  whole.whole = true;
  const Result<Profile> narrow = read(recorder.file(), shape), kept = read(recorder.file(), whole),
                        every = read(recorder.file(), all);
  CHECK(kept->samples() == narrow->samples());
  CHECK(kept->samples() < every->samples());
  CHECK(kept->frames().size() > narrow->frames().size());
  for (const Frame& frame : kept->frames()) CHECK(std::ranges::count(every->frames(), frame) == 1);
  CHECK(std::ranges::any_of(kept->frames(), [](const Frame& frame) { return frame.kind == Frame::Kind::native; }));
}

TEST_CASE("a raw recording carries the text of files, up to a limit", "[unit]") {
  const EventTables tables;
  std::ostringstream out;
  RawWriter writer(tables, Unit::nanoseconds, out);
  const std::string any("a\n\0\xff\x1b[31m", 9);
  writer.source("app/main.lua", {any, true});
  writer.source("\x1b.lua", {std::string(raw::most_source - any.size(), 'x'), false});
  writer.about({});
  writer.flush();
  const Result<Profile> whole = read(out.str());
  REQUIRE(whole);
  REQUIRE(whole->sources.size() == 2);
  CHECK(whole->sources.at("app/main.lua").text == any);
  CHECK(whole->sources.at("app/main.lua").changed);
  CHECK(whole->sources.at("\\x1b.lua").text.size() == raw::most_source - any.size());
  CHECK(!whole->sources.at("\\x1b.lua").changed);
  writer.source("more.lua", {"x", false});
  writer.flush();
  CHECK(read(out.str())->sources.size() == 2);
}

TEST_CASE("a sample keeps the CPU that its thread had, where that is asked for", "[unit]") {
  Recorder recorder({.cpus = true});
  const std::uint32_t one = recorder.thread({1, "one"}), two = recorder.thread({2, "two"});
  const Frame main = lua("main chunk", "a.lua", 0, 1);
  std::int64_t at = 0;
  const auto add = [&](std::uint32_t thread, Sample::State state, int cpu) {
    Sample sample;
    sample.state = state;
    sample.cpu = static_cast<std::int16_t>(cpu);
    recorder.sample(thread, {at += 10 * ms, 10 * ms}, sample, {main});
  };
  using State = Sample::State;
  add(one, State::running, -1);  // of a release that did not know it
  add(one, State::running, 3), add(two, State::running, 0), add(one, State::running, 3);
  add(one, State::sleeping, -1), add(one, State::running, 3), add(one, State::waiting, 200);
  add(two, State::waiting, 0), add(one, State::running, 200);
  recorder.about({});
  const auto cpus = [](const Profile& profile) {
    std::map<std::tuple<std::uint32_t, State, int>, std::int64_t> found;
    for (const auto& [of, amount] : profile.counts()) {
      const Profile::Situation& situation = profile.situations()[of.situation];
      found[{of.thread, situation.state, situation.cpu}] += amount.samples;
    }
    return found;
  };
  const Result<Profile> with = read(recorder.file(), {.cpus = true}), without = read(recorder.file());
  REQUIRE(with);
  CHECK(cpus(*with) == cpus(recorder.profile()));
  CHECK(cpus(*with).at({0, State::running, 3}) == 3);
  REQUIRE(without);
  CHECK(without->situations().size() == 3);
}

TEST_CASE("an empty text withdraws the text of a file", "[unit]") {
  const EventTables tables;
  std::ostringstream out;
  RawWriter writer(tables, Unit::nanoseconds, out);
  writer.source("a.lua", {"one", false});
  writer.source("b.lua", {"two", false});
  writer.source("a.lua", {});
  writer.flush();
  const Result<Profile> read_again = read(out.str());
  REQUIRE(read_again);
  CHECK(read_again->sources.size() == 1);
  CHECK(read_again->sources.contains("b.lua"));
}

TEST_CASE("what is no raw recording is told so, and a later one", "[unit]") {
  CHECK(!read(""));
  CHECK(read("{\"$schema\":1}").error().text.find("no raw recording") != std::string::npos);
  CHECK(read("LUASPY\x1a\x02"));
  for (const char* const unknown : {"LUASPY\x1a\x03", "LUASPY\x1a\xff"}) {
    CHECK(read(unknown).error().cause == Cause::unsupported);
    CHECK(read(unknown).error().text.find("this luaspy reads versions 1 to 2") != std::string::npos);
  }
  // Unknown records, and additional fields in known ones, are skipped; a block may be empty.
  Recorder recorder;
  record_everything(recorder);
  std::vector<std::string> blocks = payloads(recorder.file());
  blocks.insert(blocks.begin(), {std::string(), std::string("\x63\x03xyz")});
  blocks[2] += std::string("\x09\x03\x01zz", 5);
  const Result<Profile> profile = read(file_of(blocks));
  REQUIRE(profile);
  CHECK(profile->samples() == recorder.profile().samples());
  CHECK(profile->idle() == recorder.profile().idle() + 1);
}

TEST_CASE("an hour at 1 kHz stays small", "[unit][figures]") {
  constexpr std::int64_t count = 3'600'000;
  constexpr int leaves = 400;
  const auto allocated = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  // The stacks are allocated before, as when a look passes them on, and so is the buffer of the
  // file.
  class File : public std::streambuf {
   public:
    File() { bytes.reserve(80'000'000); }
    std::string bytes;

   private:
    std::streamsize xsputn(const char* more, std::streamsize n) override {
      return bytes.append(more, static_cast<std::size_t>(n)), n;
    }
    int overflow(int c) override { return bytes += static_cast<char>(c), c; }
  } file;
  std::ostream out(&file);
  EventTables tables;
  const ThreadInfo the_thread = {100, "lua5.4", 100, "lua5.4"};
  const ThreadId its_id = tables.threads.intern(the_thread);
  std::vector<StackId> ids;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    Stack stack;
    for (int depth = 0; depth < 12; ++depth)
      stack.push_back(lua("function", "app/main.lua", depth + leaf % 20 * 20, depth * 7));
    stack.push_back(lua("leaf", "app/main.lua", leaf, leaf + 1));
    ids.push_back(tables.stacks.intern(stack));
  }
  const std::size_t before = allocated();
  const auto began = std::chrono::steady_clock::now();
  {
    Profile profile(false);
    StackView shaper({}, tables.stacks, profile.stacks());
    RawWriter raw(tables, Unit::nanoseconds, out);
    const std::uint32_t thread = profile.index_of(the_thread);
    std::minstd_rand random(3);
    std::int64_t at = 0;
    Sample facts;
    facts.vm_state = VmState::interpreting,
    facts.quality.stacks = facts.quality.with_lua = facts.quality.native_complete = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t weight = ms - 50'000 + static_cast<std::int64_t>(random() % 100'000);
      at += weight;
      facts.stopped_ns = 20'000 + static_cast<std::int64_t>(random() % 20'000);
      facts.stack = ids[random() % leaves];
      profile.add(thread, {at, weight}, facts, *shaper.shaped(facts.stack, facts.vm_state, the_thread));
      raw.sample(its_id, {at, weight}, facts);
      if (i % 1000 == 999) raw.flush();
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const double a_sample = static_cast<double>(file.bytes.size()) / count;
    std::cout << "an hour at 1 kHz: " << file.bytes.size() / 1'000'000 << " MB of file, " << a_sample
              << " bytes a sample; " << (allocated() - before) / 1000 << " kB of memory; written in " << took << " s\n";
    CHECK(profile.samples() == count);
    CHECK(a_sample < 18);
    CHECK(allocated() - before < 3'000'000);
  }
  for (const bool keeps_order : {false, true}) {
    std::istringstream in(file.bytes);
    const std::size_t unread = allocated();
    const auto start = std::chrono::steady_clock::now();
    const Result<Profile> again = read_raw(in, {.lines = true}, {}, keeps_order);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::cout << "  read " << (keeps_order ? "in order" : "as counts") << " in " << took << " s, "
              << (allocated() - unread) / 1000 << " kB of memory\n";
    REQUIRE(again);
    CHECK(again->samples() == count);
    CHECK(allocated() - unread < (keeps_order ? 9 * count + 3'000'000 : 3'000'000));
  }
}

}  // namespace luaspy::raw_test
