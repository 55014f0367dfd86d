// The text of perf script, speedscope's files and OpenTelemetry's messages.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "output/protobuf.h"
#include "support/foreign_files.h"
#include "support/sample_profile.h"

namespace luaspy::foreign_text_test {
namespace {

std::string perf_text() {
  std::ifstream file(std::string(LUASPY_TESTS) + "/unit/input/perf_script.txt");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Without the samples of sleeping threads, whose number OpenTelemetry's message does not have.
Profile running(const std::string& recording) {
  Result<Profile> profile = foreign::read(recording, {0, {}, "lua5.4"});
  REQUIRE(profile);
  return std::move(*profile);
}

std::string text_of(const nlohmann::json& json) { return json.dump(); }

}  // namespace

// perf 6.1, `perf record -g -F 199 -e cpu-clock`, of a program whose name has a space.
TEST_CASE("the text of perf script is a profile", "[unit]") {
  const Profile profile = foreign::profile_of(perf_text());
  CHECK(profile.about.kind == "the text of perf script (cpu-clock)");
  CHECK(profile.about.torn == "");
  CHECK(profile.about.unit == Unit::nanoseconds);
  CHECK(profile.about.timed);
  CHECK(profile.about.command == "two words");
  CHECK(profile.samples() == 65);
  CHECK(profile.weight() == 65 * std::int64_t{5'025'125});
  REQUIRE(profile.threads().size() == 1);
  CHECK(profile.threads()[0].tid == 12908);
  const std::string stacks = foreign::written("folded", profile);
  INFO(stacks);
  CHECK(stacks.find("main (two words);work (two words);spin (two words) ") != std::string::npos);
  CHECK(stacks.find("__libc_start_call_main") == std::string::npos);  // shown with --mode all
  CHECK(stacks.find(" [kernel]") != std::string::npos);
}

TEST_CASE("other lines of perf script", "[unit]") {
  // Without stacks, with threads and CPUs, with an event that counts and with modifiers; an event beside it.
  const Profile profile = foreign::profile_of(
      "# captured on: today\n"
      "#\n"
      "       two words   100/101 [003] 65672.601185:   10101010 cycles:Pu:      5592f835718a spin+0x21 (/tmp/two "
      "words)\n"
      "       two words   100/101 [003] 65672.601385:          1 cache-misses:      5592f835718a spin+0x21 (/tmp/x)\n"
      "lua  7 [000] 65672.701185: cycles:Pu: \n"
      "\tffffffff81631baa kmem_cache_free+0x5a ([kernel.kallsyms])\n"
      "\tffffffffc0631baa ext4_read ([ext4])\n"
      "\t    7ffd1000 [unknown] ([vdso])\n"
      "\t    55d0c0ffee operator new(unsigned long)+0x10 (/usr/lib/libstdc++.so.6)\n\n");
  CHECK(profile.about.kind == "the text of perf script (cycles)");
  CHECK(profile.about.unit == Unit::samples);
  CHECK(profile.about.torn == "");
  CHECK(profile.about.duration_ns == 100'000'000);
  CHECK(foreign::written("folded", profile, {.threads = true}) ==
        "thread lua (7);operator new(unsigned long) (libstdc++.so.6);[unknown] ([vdso]);ext4_read [ext4];"
        "kmem_cache_free [kernel] 1\n"
        "thread two words (101);spin (two words) 1\n");
  const std::string whole = perf_text();
  CHECK(foreign::profile_of(whole + "this is no perf\n").about.torn ==
        "line 439: this is neither a sample of perf script nor a frame of one");
  CHECK(foreign::profile_of("a 1 2.5: 3 cpu-clock: \n\tnothing here\n").about.torn ==
        "line 2: this is no frame of perf script");
}

TEST_CASE("a profile comes back from speedscope but for the number of its samples", "[unit]") {
  for (const Unit unit : {Unit::nanoseconds, Unit::bytes, Unit::objects}) {
    const Profile profile = foreign::profile_of(sample_recording(unit));
    const Profile again = foreign::profile_of(foreign::written("speedscope", profile));
    CHECK(again.about.kind == "a file of speedscope");
    CHECK(again.about.torn == "");
    CHECK(again.weight() == profile.weight());
    CHECK(again.about.unit == (unit == Unit::objects ? Unit::samples : unit));
    CHECK(again.about.command == profile.about.command);
    CHECK(again.threads().size() == profile.threads().size());
    // Its frames are numbered in the order in which they are used.
    const std::string file = foreign::written("speedscope", again);
    if (unit != Unit::objects) CHECK(file.size() == foreign::written("speedscope", profile).size());
    CHECK(foreign::written("speedscope", foreign::profile_of(file)) == file);
    // Here no two samples are alike one after another, so that even their number is kept.
    if (unit == Unit::nanoseconds)
      CHECK(foreign::written("folded", again, {.threads = true}) ==
            foreign::written("folded", profile, {.threads = true}));
  }
}

TEST_CASE("speedscope's files of other programs", "[unit]") {
  const auto file = [](const char* profiles) {
    return std::string(R"({"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[)") +
           R"({"name":"main","file":"/x/app.c","line":3},{"name":"work","file":"a.lua","line":7}]},"profiles":[)" +
           profiles + "]}";
  };
  const Profile evented = foreign::profile_of(
      file(R"({"type":"evented","name":"one","unit":"milliseconds","startValue":10,"endValue":20,"events":[)"
           R"({"type":"O","frame":0,"at":10},{"type":"O","frame":1,"at":11.5},{"type":"C","frame":1,"at":14},)"
           R"({"type":"C","frame":0,"at":20}]})"));
  CHECK(evented.about.timed);
  CHECK(evented.weight() == 10'000'000);
  std::map<std::string, std::int64_t> weights;
  for (const auto& [stack, amount] : evented.stack_counts())
    weights[describe(evented.stacks().frames_of(stack).back(), false)] = amount.weight;
  CHECK(weights == std::map<std::string, std::int64_t>{{"main (app.c)", 7'500'000}, {"work (a.lua:7)", 2'500'000}});
  const auto torn = [&](const char* profiles) { return foreign::profile_of(file(profiles)).about.torn; };
  CHECK(torn(R"({"type":"sampled","unit":"none","samples":[[0],[0,9]],"weights":[1,1]})") ==
        "sample 1 of profile 0: it has a frame that the file does not have");
  CHECK(torn(R"({"type":"sampled","unit":"none","samples":[[0],[0,1]],"weights":[1]})") ==
        "sample 1 of profile 0: it has no weight");
  CHECK(torn(R"({"type":"evented","unit":"nanoseconds","startValue":-9223372036854775808,"events":[)"
             R"({"type":"O","frame":0,"at":-9223372036854775808},{"type":"C","frame":0,"at":5}]})") ==
        "event 0 of profile 0: its time or its frame cannot be");
  CHECK(torn(R"({"type":"evented","unit":"seconds","events":[{"type":"C","frame":0,"at":1}]})") ==
        "event 0 of profile 0: it ends a call that is not the innermost");
  CHECK(foreign::error_of(file(R"({"unit":"bytes"},{"unit":"seconds"})")).starts_with("Its profiles count different"));
  CHECK(foreign::error_of(file("{")).starts_with("This is no whole JSON"));
  CHECK(foreign::error_of(R"({"profiles":[],"threads":[]})").starts_with("This is JSON, but neither"));
  std::string deep = R"({"profiles":)";
  for (int i = 0; i < 1'000'000; ++i) deep += '[';
  CHECK(foreign::error_of(deep).starts_with("This is no whole JSON"));
}

TEST_CASE("a profile comes back from OpenTelemetry's message, as bytes and as JSON", "[unit]") {
  const Profile profile = running(sample_recording(Unit::nanoseconds));
  const std::string bytes = foreign::written("otlp", profile), json = foreign::written("otlp-json", profile);
  // A Collector writes a message in each line, or each behind its size.
  const std::string sizes = {static_cast<char>(bytes.size() >> 24), static_cast<char>(bytes.size() >> 16),
                             static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size())};
  for (const std::string& file : {bytes, json, json + json, sizes + bytes + sizes + bytes}) {
    const int times = file == bytes || file == json ? 1 : 2;
    const Profile again = foreign::profile_of(file);
    CHECK(again.about.kind == "profiles of OpenTelemetry");
    CHECK(again.about.torn == "");
    CHECK(again.about.unit == Unit::nanoseconds);
    CHECK(again.samples() == times * profile.samples());
    CHECK(again.about.rate == 100);
    CHECK(again.about.started_s == profile.about.started_s);
    CHECK(again.about.duration_ns == profile.about.duration_ns);
    CHECK(again.about.pid == 100);
    CHECK(again.samples_in(VmState::collecting) == times * profile.samples_in(VmState::collecting));
    if (times == 1) CHECK(foreign::written("folded", again) == foreign::written("folded", profile));
  }
  const Profile torn = foreign::profile_of(sizes + bytes + sizes + bytes.substr(0, 100));
  CHECK(torn.about.torn == fmt::format("byte {}: this is no whole message", bytes.size() + 4));
  CHECK(torn.samples() == profile.samples());
  CHECK(foreign::profile_of(json + json.substr(0, 100)).about.torn == "line 2: this is no JSON");
  for (const Unit unit : {Unit::bytes, Unit::objects}) {
    const Profile allocated = running(sample_recording(unit));
    const Profile again = foreign::profile_of(foreign::written("otlp", allocated));
    CHECK(again.about.unit == unit);
    CHECK(again.weight() == allocated.weight());
  }
}

TEST_CASE("OpenTelemetry's message of a profiler that waits, and of another than luaspy", "[unit]") {
  const Profile all = foreign::profile_of(sample_recording(Unit::nanoseconds));
  const Profile again = foreign::profile_of(foreign::written("otlp", all));
  std::int64_t slept = 0;
  for (const auto& [at, amount] : again.counts())
    slept += again.situations()[at.situation].state == Sample::State::sleeping ? amount.weight : 0;
  CHECK(slept == 10'000'000);
  const nlohmann::json other = nlohmann::json::parse(R"({"resourceProfiles":[{"resource":{"attributes":[
    {"keyStrindex":8,"value":{"stringValueStrindex":9}}]},"scopeProfiles":[{"scope":{"name":"ebpf"},"profiles":[
    {"sampleType":{"typeStrindex":1,"unitStrindex":2},"periodType":{"typeStrindex":3,"unitStrindex":4},
     "period":"50000000","samples":[{"stackIndex":1,"timestampsUnixNano":["1","2","3"]}]}]}]}],
    "dictionary":{"stringTable":["","samples","count","cpu","nanoseconds","f","a.lua","profile.frame.type",
    "service.name","shop","lua","vfs_read","kernel"],
    "mappingTable":[{}],"functionTable":[{},{"nameStrindex":5,"filenameStrindex":6,"startLine":"3"},{"nameStrindex":11}],
    "attributeTable":[{},{"keyStrindex":7,"value":{"stringValue":"lua"}},{"keyStrindex":7,"value":{"stringValueStrindex":12}}],
    "locationTable":[{},{"lines":[{"functionIndex":1,"line":"5"}],"attributeIndices":[1]},
    {"lines":[{"functionIndex":2}],"attributeIndices":[2]}],
    "stackTable":[{},{"locationIndices":[2,1]}]}})");
  const Profile profile = foreign::profile_of(text_of(other));
  CHECK(foreign::written("folded", profile) == "f (a.lua:3);vfs_read [kernel] 3\n");
  CHECK(profile.weight() == 150'000'000);
  CHECK(profile.about.command == "shop");
}

}  // namespace luaspy::foreign_text_test
