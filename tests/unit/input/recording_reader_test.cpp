// What a file is, by its content, and the round trip of a profile through the formats of others.

#include "input/recording_reader.h"

#include <catch2/catch.hpp>

#include "output/protobuf.h"
#include "support/foreign_files.h"
#include "support/sample_profile.h"

namespace luaspy::recording_reader_test {
namespace {

std::vector<std::pair<std::string, Profile>> examples() {
  std::vector<std::pair<std::string, Profile>> all;
  for (const Unit unit : {Unit::nanoseconds, Unit::bytes, Unit::objects})
    all.emplace_back(name(unit), foreign::profile_of(sample_recording(unit)));
  all.emplace_back("kernel", foreign::profile_of(kernel_recording()));
  return all;
}

}  // namespace

TEST_CASE("a profile comes back from the formats that have its numbers", "[unit]") {
  for (const auto& [what, profile] : examples()) {
    INFO(what);
    const std::string folded = foreign::written("folded", profile);
    for (const std::string_view format : {"folded", "pprof"}) {
      INFO(format);
      const std::string file = foreign::written(format, profile);
      const Result<Profile> again = foreign::read(file);
      REQUIRE(again);
      CHECK(again->about.torn == "");
      CHECK(again->about.complete);
      CHECK(!again->about.timed);
      CHECK(foreign::written("folded", *again) == folded);
      CHECK(foreign::written("folded", foreign::profile_of(format == "pprof" ? foreign::gunzipped(file)
                                                                             : foreign::gzipped(file))) == folded);
    }
    const Result<Profile> pprof = foreign::read(foreign::written("pprof", profile));
    REQUIRE(pprof);
    CHECK(pprof->about.kind == "a profile of pprof");
    CHECK(pprof->about.unit == profile.about.unit);
    CHECK(pprof->weight() == profile.weight());
    CHECK(pprof->samples() == profile.samples());
    CHECK(pprof->about.command == profile.about.command);
    CHECK(pprof->about.started_s == profile.about.started_s);
    CHECK(foreign::written("folded", *pprof, {.threads = true}) ==
          foreign::written("folded", profile, {.threads = true}));
    for (const VmState state : {VmState::collecting, VmState::c})
      CHECK(pprof->samples_in(state) == profile.samples_in(state));
  }
}

TEST_CASE("frames of folded stacks are what luaspy wrote", "[unit]") {
  const Profile profile = foreign::profile_of(
      "main (lua5.4);main chunk (a.lua);work (a.lua:3);string.gsub [C];read [kernel];[epoll_wait] 3\n"
      "# a comment\n"
      "\r\n"
      "main (lua5.4);work (a.lua:3#2);a+0x10;f ([string \"x (y)\"]:1) 2.6\n");
  CHECK(profile.about.kind == "folded stacks");
  CHECK(profile.about.unit == Unit::samples);
  CHECK(profile.samples() == 6);
  std::vector<std::string> kinds;
  for (const Frame& frame : profile.frames())
    kinds.push_back(std::to_string(static_cast<int>(frame.kind)) + describe(frame, false));
  CHECK(kinds == std::vector<std::string>{"2main (lua5.4)", "0main chunk (a.lua)", "0work (a.lua:3)",
                                          "1string.gsub [C]", "4read [kernel]", "3[epoll_wait]", "0work (a.lua:3#2)",
                                          "2a+0x10", "0f ([string \"x (y)\"]:1)"});
}

TEST_CASE("a damaged text says its line, and keeps what comes before", "[unit]") {
  const Profile profile = foreign::profile_of("a;b 3\nc 4\nd;e\nf 5\n");
  CHECK(profile.samples() == 7);
  CHECK(!profile.about.complete);
  CHECK(profile.about.torn == "line 3: no number at its end");
  CHECK(foreign::profile_of("a 4611686018427387\n"
                            "a 9000000000000000000\n")
            .about.torn == "line 2: no number at its end");
  const std::string much = std::to_string(std::numeric_limits<std::int64_t>::max() / 10) + "\n";
  CHECK(foreign::profile_of("a " + much + "a " + much).about.torn == "line 2: the sum of all counts is too large");
  CHECK(foreign::profile_of("a 1\n" + std::string(2 << 20, 'x') + " 1\n").about.torn ==
        "line 2: it is longer than 1 MiB");
}

TEST_CASE("a damaged pprof says its byte", "[unit]") {
  const std::string whole = foreign::gunzipped(
      foreign::written("pprof", foreign::profile_of(sample_recording(Unit::nanoseconds))));
  std::size_t read_some = 0;
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const Result<Profile> part = foreign::read(whole.substr(0, size));
    if (!part) continue;
    read_some += part->samples() != 0;
    CHECK((part->about.torn.empty() || part->about.torn.starts_with("byte ")));
  }
  CHECK(read_some > 100);
  const std::string packed = foreign::gzipped(whole);
  const Result<Profile> part = foreign::read(packed.substr(0, packed.size() - 9));
  REQUIRE(part);
  CHECK(part->about.torn == "its gzip stream is cut off at byte " + std::to_string(packed.size() - 9));
}

TEST_CASE("which values of a pprof are shown", "[unit]") {
  using Message = ProtobufMessage;
  // `types`: pairs of strings; one sample with the values 1, 2, 3 and so on.
  const auto file = [](const std::vector<std::string>& types, std::uint64_t otherwise = 0,
                       std::vector<std::uint64_t> values = {}) {
    Message all;
    all.add(6, std::string_view());
    std::string strings;
    for (std::size_t i = 0; i < types.size(); i += 2) {
      Message type;
      type.add(1, std::uint64_t{i + 1}), type.add(2, std::uint64_t{i + 2});
      all.add(1, type);
      if (values.size() * 2 <= i) values.push_back(i / 2 + 1);
    }
    Message sample, location, line, function;
    sample.add(1, std::vector<std::uint64_t>{1}), sample.add(2, values);
    all.add(2, sample);
    line.add(1, std::uint64_t{1}), location.add(1, std::uint64_t{1}), location.add(4, line);
    all.add(4, location);
    function.add(1, std::uint64_t{1}), function.add(2, std::uint64_t{types.size() + 1});
    all.add(5, function);
    all.add(14, otherwise);
    std::string bytes = all.bytes();
    Message names;
    for (const std::string& text : types) names.add(6, std::string_view(text));
    names.add(6, std::string_view("f"));
    return bytes + names.bytes();
  };
  const auto shown = [&](const Result<Profile>& profile) {
    REQUIRE(profile);
    return std::to_string(profile->samples()) + " " + std::to_string(profile->weight()) + " " +
           std::string(name(profile->about.unit));
  };
  CHECK(shown(foreign::read(file({"samples", "count", "cpu", "nanoseconds"}))) == "1 2 nanoseconds");
  CHECK(shown(foreign::read(file({"samples", "count", "cpu", "microseconds"}))) == "1 2000 nanoseconds");
  CHECK(shown(foreign::read(file({"contentions", "count"}))) == "1 1 samples");
  const std::vector<std::string> heap = {"alloc_objects", "count", "alloc_space", "bytes",
                                         "inuse_objects", "count", "inuse_space", "bytes"};
  CHECK(shown(foreign::read(file(heap))) == "3 4 bytes");
  CHECK(shown(foreign::read(file(heap, 3))) == "1 2 bytes");
  RawWindow objects;
  objects.allocations = Unit::objects;
  CHECK(shown(foreign::read(file(heap), objects)) == "3 3 objects");
  CHECK(foreign::error_of(file({"samples", "count"}, 0, {~std::uint64_t{0}})).starts_with("It has negative values"));
}

TEST_CASE("what luaspy does not read says so", "[unit]") {
  CHECK(foreign::error_of("") == "The file is empty.");
  CHECK(foreign::error_of("PERFILE2abcdef").starts_with("This is a file of perf itself."));
  CHECK(foreign::error_of("\x7f"
                          "ELF\x02\x01\x01")
            .starts_with("This is nothing that luaspy reads."));
  CHECK(foreign::error_of("hello world\n").starts_with("This is nothing that luaspy reads."));
  for (const char* const format : {"speedscope", "otlp-json", "chrometrace"}) {
    CAPTURE(format);
    CHECK(foreign::error_of(foreign::written(format, sample_profile())).starts_with("This is JSON, which luaspy"));
  }
  CHECK(foreign::error_of("\n {\"profiles\":").starts_with("This is JSON, which luaspy does not read."));
  CHECK(foreign::error_of(foreign::written("otlp", sample_profile())).starts_with("This is not a profile of pprof"));
  CHECK(foreign::error_of(foreign::gzipped("hello")).starts_with("This is nothing that luaspy reads."));
}

TEST_CASE("a recording may be compressed", "[unit]") {
  const std::string recording = sample_recording(Unit::nanoseconds);
  CHECK(foreign::written("folded", foreign::profile_of(foreign::gzipped(recording))) ==
        foreign::written("folded", foreign::profile_of(recording)));
  CHECK(foreign::profile_of(foreign::gzipped(recording)).about.kind == "");
}

}  // namespace luaspy::recording_reader_test
