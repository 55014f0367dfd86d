// What formats show for each unit, and how much memory writing needs.

#include <malloc.h>

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <array>

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <streambuf>

#include "output/format.h"
#include "output/write_options.h"
#include "support/foreign_files.h"
#include "support/framed.h"
#include "support/sample_profile.h"

namespace luaspy::formats_test {
namespace {

std::size_t allocated() { return ::mallinfo2().uordblks; }

// Counts the bytes that are written, and regularly measures the memory in use.
class Watch : public std::streambuf {
 public:
  Watch() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  std::size_t bytes() const { return bytes_ + static_cast<std::size_t>(pptr() - pbase()); }
  std::size_t most_allocated() const { return most_; }

 private:
  int_type overflow(int_type byte) override {
    bytes_ += buffer_.size();
    most_ = std::max(most_, allocated());
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return sputc(traits_type::to_char_type(byte));
  }

  std::array<char, 1 << 14> buffer_;
  std::size_t bytes_ = 0, most_ = 0;
};

// A profile of two samples with the weights 3,000 and 400.
std::string written(const char* format, Unit unit) {
  Profile profile;
  profile.about.unit = unit;
  profile.about.rate = 100;
  const Frame main = {Frame::Kind::native, "main", "lua", 0, 0}, work = {Frame::Kind::lua, "work", "a.lua", 1, 2};
  FramedSample sample;
  sample.stack = {main, work};
  add_framed(profile, {1, "one"}, {10'000'000, 3000}, sample);
  sample.stack = {main};
  add_framed(profile, {1, "one"}, {20'000'000, 400}, sample);
  std::ostringstream out;
  find_format(format)->write(profile, {}, out);
  return out.str();
}

// RFC 1952.
std::string gunzipped(std::string packed) {
  std::string text(1 << 16, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data()), stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data()), stream.avail_out = static_cast<uInt>(text.size());
  REQUIRE(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("every format says what samples weigh, in bytes and in objects", "[unit]") {
  CHECK(written("folded", Unit::nanoseconds) == "main (lua) 1\nmain (lua);work (a.lua:1) 1\n");
  for (const Unit unit : {Unit::bytes, Unit::objects}) {
    const bool bytes = unit == Unit::bytes;
    CHECK(written("folded", unit) == "main (lua) 400\nmain (lua);work (a.lua:1) 3000\n");

    const nlohmann::json speedscope = nlohmann::json::parse(written("speedscope", unit)).at("profiles").at(0);
    CHECK(speedscope.at("unit") == (bytes ? "bytes" : "none"));
    CHECK(speedscope.at("weights") == nlohmann::json({3000, 400}));
    CHECK(speedscope.at("endValue") == 3400);

    const std::string callgrind = written("callgrind", unit);
    CHECK(has(callgrind, bytes ? "\nevent: Bytes : bytes\nevents: Samples Bytes\nsummary: 2 3400\n"
                               : "\nevent: Objects : objects\nevents: Samples Objects\nsummary: 2 3400\n"));
    CHECK(has(callgrind, bytes ? "\ndesc: total: 3.3 KiB\n" : "\ndesc: total: 3,400 objects\n"));

    const nlohmann::json samples = nlohmann::json::parse(written("firefox", unit)).at("threads").at(0).at("samples");
    CHECK(samples.at("weightType") == (bytes ? "bytes" : "samples"));
    CHECK(samples.at("weight") == nlohmann::json({3000, 400, 0}));  // the last one marks the end of the one before
    CHECK(samples.at("timeDeltas") == nlohmann::json({10.0, 10.0, 0.0}));

    const std::string page = written("flamegraph", unit);
    CHECK(has(page, bytes ? "\n\"unit\":\"bytes\",\n" : "\n\"unit\":\"objects\",\n"));
    CHECK(has(page, bytes ? "[\"Total\",\"3.3 KiB\"]" : "[\"Total\",\"3,400 objects\"]"));
    CHECK(has(page, "\"start\":0,\"runs\":[2,0,1,3000,0,1,0,1,400,0]"));
  }
}

TEST_CASE("speedscope: each stack has its weight, each thread a profile", "[unit]") {
  for (const Unit unit : {Unit::nanoseconds, Unit::bytes, Unit::objects}) {
    const Profile profile = foreign::profile_of(sample_recording(unit));
    const nlohmann::json file = nlohmann::json::parse(foreign::written("speedscope", profile));
    CHECK(file.at("profiles").size() == profile.threads().size());
    const nlohmann::json& frames = file.at("shared").at("frames");
    std::map<std::string, std::int64_t> found, expected;
    for (const nlohmann::json& thread : file.at("profiles")) {
      REQUIRE(thread.at("samples").size() == thread.at("weights").size());
      for (std::size_t i = 0; i < thread.at("samples").size(); ++i) {
        std::string stack;
        for (const nlohmann::json& frame : thread.at("samples")[i])
          stack += frames.at(frame.get<std::size_t>()).at("name").get<std::string>() + ';';
        found[stack] += thread.at("weights")[i].get<std::int64_t>();
      }
    }
    for (const auto& [id, amount] : profile.stack_counts()) {
      std::string stack;
      for (const FrameId frame : profile.stack(id)) stack += describe(profile.frames()[frame], false) + ';';
      expected[stack] += amount.weight;
    }
    CHECK(found == expected);
  }
}

TEST_CASE("the ending of a file chooses the format", "[unit]") {
  const auto chosen = [](std::string_view file, std::string_view name = "") {
    const Result<const Format*> format = choose_format(name, file, nullptr);
    return !format ? "error" : *format == nullptr ? "none" : std::string((*format)->name);
  };
  for (const Format& format : formats()) {
    CHECK(chosen("a" + std::string(format.extension)) == format.name);
    CHECK(chosen("my.lua", format.name) == format.name);
  }
  CHECK(chosen("a.svg") == "svg");
  CHECK(chosen("a.json") == "speedscope");
  CHECK(chosen("a.trace.json") == "chrometrace");
  CHECK(chosen("a.otlp.json") == "otlp-json");
  CHECK(chosen("dir.lua/a.txt") == "folded");
  for (const char* const file : {"", "-", "profile", "/dev/null", "some.where/profile", "..", ".hidden", "/a.b/"})
    CHECK(chosen(file) == "none");
  for (const char* const file : {"my.lua", "a.htm", "a.tar.gz", ".hidden.x"}) CHECK(chosen(file) == "error");
  CHECK(choose_format("", "my.lua", nullptr).error().text ==
        "my.lua: no format has the ending .lua. Those that there are: .html, .svg, .speedscope.json, .json, .luaspy, "
        ".folded, .txt, .pb.gz, .otlp, .otlp.json, .trace.json, .callgrind, .firefox.json. With -f FORMAT a file may "
        "end as you like.");
}

TEST_CASE("the next step names the file, as a shell reads it", "[unit]") {
  CHECK(next_step(*find_format("raw"), "my.luaspy") == "luaspy report my.luaspy");
  CHECK(next_step(*find_format("callgrind"), "it's mine") ==
        "kcachegrind 'it'\\''s mine', or callgrind_annotate 'it'\\''s mine'");
  CHECK(next_step(*find_format("raw"), "-x") == "luaspy report ./-x");
  for (const Format& format : formats()) CHECK(!has(next_step(format, "FILE"), "FILE FILE"));
}

TEST_CASE("a picture draws what can be seen, however deep and wide the stacks are", "[unit]") {
  Profile profile;
  FramedSample sample;
  for (int i = 0; i < 1000; ++i) sample.stack.push_back({Frame::Kind::lua, "f", "a.lua", i, i});
  for (int i = 0; i < 10'000; ++i) add_framed(profile, {1, "one"}, {i, 1}, sample);
  sample.stack = {{Frame::Kind::lua, "rare", "b.lua", 1, 1}};
  add_framed(profile, {1, "one"}, {10'000, 1}, sample);
  std::ostringstream out;
  find_format("svg")->write(profile, {}, out);
  CHECK(has(out.str(), ">f (a.lua:398)<"));
  CHECK(!has(out.str(), ">f (a.lua:399)<"));
  CHECK(!has(out.str(), "rare"));
  CHECK(has(out.str(), ">602 boxes are too small or too deep to be drawn<"));
}

TEST_CASE("a picture and a page have the same colours", "[unit]") {
  Profile profile{false};
  FramedSample sample;
  sample.stack = {{Frame::Kind::lua, "of_lua", "a.lua", 1, 1},
                  {Frame::Kind::c, "of_c", "lua", 0, 0},
                  {Frame::Kind::native, "of_native", "lua", 0, 0},
                  marker("of_marker"),
                  state_marker(VmState::collecting)};
  add_framed(profile, {1, "one"}, {1, 1}, sample);
  const auto text = [&](const char* format) {
    std::ostringstream out;
    find_format(format)->write(profile, {}, out);
    return out.str();
  };
  const std::string picture = text("svg"), page = text("flamegraph");
  const auto after = [](const std::string& in, const std::string& mark, std::size_t from = 0) {
    const std::size_t at = in.find(mark, from);
    REQUIRE(at != std::string::npos);
    return in.substr(at + mark.size(), 7);
  };
  const std::size_t colours = page.find("const kindColours = {");
  for (const auto& [box, kind] : {std::pair{"of_lua", "lua"},
                                  {"of_c", "c"},
                                  {"of_native", "native"},
                                  {"of_marker", "marker"},
                                  {"[garbage collector]", "gc"}}) {
    INFO(kind);
    const std::string colour = after(page, fmt::format("{}: \"", kind), colours);
    CHECK(colour.starts_with('#'));
    CHECK(after(picture, "fill=\"", picture.find(fmt::format("<title>{}", box))) == colour);
  }
}

TEST_CASE("what shows time only is not made of anything else", "[unit]") {
  for (const Format& format : formats()) {
    CHECK(!refusal(format, Unit::nanoseconds));
    CHECK(refusal(format, Unit::bytes).has_value() == (format.name == "chrometrace"));
  }
  CHECK(refusal(*find_format("chrometrace"), Unit::objects)->text.find("this profile counts objects") !=
        std::string::npos);
}

TEST_CASE("writing many samples takes little memory", "[unit][figures]") {
  constexpr int count = 200'000;
  Profile profile;
  FramedSample sample;
  for (int i = 0; i < count; ++i) {
    sample.stack = {{Frame::Kind::native, "main", "lua", 0, 0}, {Frame::Kind::lua, "work", "a.lua", 1, i * 79 % 200}};
    sample.vm_state = static_cast<VmState>(i % 3);
    add_framed(profile, {1, "one"}, {i * std::int64_t{1'000'000}, 1'000'000 - i % 7}, sample);
  }
  for (const Format& format : formats()) {
    if (format.write == nullptr) continue;
    INFO(format.name);
    Watch watch;
    std::ostream out(&watch);
    const std::size_t before = allocated();
    format.write(profile, {}, out);
    CHECK(watch.bytes() > (format.needs_order() ? 10 * count : 10));
    CHECK(std::max(watch.most_allocated(), before) - before < 2'000'000);
  }
}

TEST_CASE("pprof tells the CPU of a sample, if it is known", "[unit]") {
  const Format& pprof = *find_format("pprof");
  Profile profile(false, shape_for(pprof, {}).cpus);
  FramedSample sample;
  sample.stack = {{Frame::Kind::native, "main", "lua", 0, 0}};
  const auto has_label = [&] {
    std::ostringstream out;
    pprof.write(profile, {}, out);
    return has(gunzipped(out.str()), "cpu");
  };
  add_framed(profile, {1, "one"}, {10'000'000, 10'000'000}, sample);
  CHECK(!has_label());
  sample.cpu = 3;
  add_framed(profile, {1, "one"}, {20'000'000, 10'000'000}, sample);
  CHECK(has_label());
}

TEST_CASE("what waits for a CPU is asleep in no format", "[unit]") {
  Profile profile;
  FramedSample sample;
  sample.stack = {{Frame::Kind::native, "main", "lua", 0, 0}};
  std::int64_t at = 0;
  for (const Sample::State state : {Sample::State::running, Sample::State::sleeping, Sample::State::waiting}) {
    sample.state = state;
    add_framed(profile, {1, "one"}, {at += 10'000'000, 10'000'000}, sample);
  }
  const auto text = [&](const char* format) {
    std::ostringstream out;
    find_format(format)->write(profile, {}, out);
    return out.str();
  };
  const std::string trace = text("chrometrace");
  for (const char* const state : {"no Lua", "asleep", "waiting for a CPU"})
    CHECK(has(trace, fmt::format("\"cat\":\"state\",\"name\":\"{}\"", state)));
  CHECK(has(text("flamegraph"), "\"runs\":[1,0,1,10000,0,1,1,1,10000,0,1,2,1,10000,0]"));
  const auto firefox = nlohmann::json::parse(text("firefox"));
  const auto& frames = firefox.at("threads").at(0).at("frameTable");
  std::set<std::pair<int, int>> kinds;
  for (std::size_t i = 0; i < frames.at("category").size(); ++i)
    kinds.emplace(frames.at("category").at(i).get<int>(), frames.at("subcategory").at(i).get<int>());
  const auto& idle = firefox.at("meta").at("categories").at(7);
  CHECK(idle.at("name") == "Idle");
  CHECK(idle.at("subcategories").at(1) == "waiting for a CPU");
  CHECK(kinds.contains({7, 0}));
  CHECK(kinds.contains({7, 1}));
}

TEST_CASE("a slow request's track says what it waited for where it did not work", "[unit]") {
  constexpr std::int64_t ms = 1'000'000;
  Profile profile;
  FramedSample sample;
  sample.stack = {{Frame::Kind::lua, "works", "a.lua", 1, 2}};
  sample.labels = profile.labels().intern({{"slow", "GET /a"}});
  for (const std::int64_t at_ms : {20, 60}) add_framed(profile, {1, "one", 7}, {at_ms * ms, 10 * ms}, sample);
  sample.labels = profile.labels().intern({{"slow", "GET /b"}});
  add_framed(profile, {1, "one", 7}, {70 * ms, 10 * ms}, sample);
  const auto stack = [&](const std::string& name) {
    return profile.stacks().intern(Stack{{Frame::Kind::lua, name, "a.lua", 1, 2}});
  };
  const StackId sleep = stack("sleep"), read = stack("read"), late = stack("late");
  // It was seen in one wait before and behind its second sample.
  profile.request_waits = {
      {7, "GET /a", {{sleep, 25 * ms, 25 * ms}, {read, 40 * ms, 70 * ms}, {late, 90 * ms, 95 * ms}}},
      {7, "GET /waits", {{read, 10 * ms, 30 * ms}}},
      {7, "GET /once", {{read, 10 * ms, 10 * ms}}}};
  std::ostringstream out;
  find_format("chrometrace")->write(profile, {}, out);
  std::map<int, std::string> names;
  std::map<int, std::vector<std::pair<std::string, double>>> open;
  std::map<std::string, std::vector<std::string>> slices;  // by track, in the order of ends: "FROM-TO NAME" (ms)
  const nlohmann::json trace = nlohmann::json::parse(out.str());
  for (const auto& event : trace.at("traceEvents")) {
    const int tid = event.value("tid", 0);
    const std::string phase = event.at("ph");
    if (event.value("name", "") == "thread_name") names[tid] = event.at("args").at("name");
    if (phase == "B") open[tid].emplace_back(event.at("name"), event.at("ts"));
    if (phase != "E") continue;
    REQUIRE_FALSE(open[tid].empty());
    const auto& [name, from] = open[tid].back();
    slices[names[tid]].push_back(fmt::format("{:g}-{:g} {}", from / 1000, event.at("ts").get<double>() / 1000, name));
    open[tid].pop_back();
  }
  using Lines = std::vector<std::string>;
  const std::string at = " (a.lua:1)";
  CHECK(slices["GET /a"] == Lines{"10-20 works" + at, "20-40 sleep" + at, "20-40 waits", "40-50 read" + at,
                                  "40-50 waits", "50-60 works" + at, "60-90 read" + at, "60-90 waits",
                                  "90-95 late" + at, "90-95 waits", "10-95 GET /a"});
  CHECK(slices["GET /b"] == Lines{"60-70 works" + at, "60-70 GET /b"});
  CHECK(slices["GET /waits"] == Lines{"10-30 read" + at, "10-30 waits", "10-30 GET /waits"});
  CHECK_FALSE(slices.contains("GET /once"));  // for how long is not known
}

TEST_CASE("a process that has executed another program is two processes in Firefox", "[unit]") {
  Profile profile;
  for (const std::uint64_t program : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1}})
    add_framed(profile, {7, "lua", 7, program == 1 ? "lua a.lua" : "lua b.lua", program, 5}, {}, FramedSample());
  std::ostringstream firefox, trace;
  find_format("firefox")->write(profile, {}, firefox);
  find_format("chrometrace")->write(profile, {}, trace);
  const auto threads = nlohmann::json::parse(firefox.str()).at("threads");
  REQUIRE(threads.size() == 2);
  CHECK(threads.at(0).at("pid") == "7");
  CHECK(threads.at(1).at("pid") == "7.1");
  CHECK(threads.at(1).at("processName") == "lua b.lua");
  CHECK(has(trace.str(), "lua a.lua, then lua b.lua"));
}

}  // namespace luaspy::formats_test
