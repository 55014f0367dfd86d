// Every writer on the sample profile: its output must be identical to the file in this folder.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "input/raw_reader.h"
#include "output/flamegraph.h"
#include "output/format.h"
#include "profile/function_table.h"
#include "support/golden.h"
#include "support/sample_profile.h"

namespace luaspy::golden_golden_test {
namespace {

std::string written(const char* format, const WriteOptions& options, Unit unit = Unit::nanoseconds) {
  std::ostringstream out;
  Profile profile = sample_profile(unit);
  if (unit == Unit::nanoseconds && find_format(format)->shows_coroutines) add_sample_tracks(profile);
  find_format(format)->write(profile, options, out);
  return out.str();
}

// The data in a page.
std::string data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from) + '\n';
}

}  // namespace

TEST_CASE("folded", "[golden]") {
  golden::check("sample.folded", written("folded", {}));
  golden::check("sample.lines.folded", written("folded", {.lines = true, .threads = true}));
}

TEST_CASE("svg", "[golden]") {
  golden::check("sample.svg", written("svg", {}));
  golden::check("sample.lines.svg", written("svg", {.lines = true, .threads = true}));
  golden::check("sample.bytes.svg", written("svg", {}, Unit::bytes));
}

TEST_CASE("speedscope", "[golden]") {
  golden::check("sample.speedscope.json", written("speedscope", {}));
  const nlohmann::json json = nlohmann::json::parse(written("speedscope", {.lines = true}));
  REQUIRE(json.at("profiles").size() == 2);
  for (const nlohmann::json& profile : json.at("profiles")) {
    REQUIRE(profile.at("samples").size() == profile.at("weights").size());
    std::int64_t total = 0;
    for (const nlohmann::json& weight : profile.at("weights")) total += weight.get<std::int64_t>();
    CHECK(profile.at("endValue") == total);
  }
}

TEST_CASE("flame graph: what the page carries", "[golden]") {
  golden::check("sample.flamegraph.json", data_of(written("flamegraph", {})));
  const nlohmann::json of_lines = nlohmann::json::parse(data_of(written("flamegraph", {.lines = true})));
  CHECK(of_lines.at("lines") == true);
  CHECK(of_lines.at("frames").at("current").at(4) == 12);
  Profile with_source = sample_profile();
  with_source.sources = {{"app/main.lua", {"x = '</script>'\n", true}}, {"not/shown.lua", {"y = 1", false}}};
  std::ostringstream page;
  write_flamegraph(with_source, {}, page);
  const nlohmann::json sources = nlohmann::json::parse(data_of(page.str())).at("sources");
  REQUIRE(sources.size() == 1);
  CHECK(sources.at(0).at("text") == "x = '</script>'\n");
  CHECK(sources.at(0).at("changed") == true);
  std::ostringstream difference;
  write_flamegraph_diff(sample_profile(), sample_profile(), {Compared::weights, 2, 0.003, 0.03}, {}, difference);
  golden::check("sample.flamegraph_diff.json", data_of(difference.str()));
}

// pprof files are compressed: tests/readers/formats/check.py compares their contents with
// sample.pprof.txt.
TEST_CASE("callgrind, chrometrace and firefox", "[golden]") {
  golden::check("sample.callgrind", written("callgrind", {}));
  golden::check("sample.trace.json", written("chrometrace", {}));
  golden::check("sample.lines.trace.json", written("chrometrace", {.lines = true}));
  golden::check("sample.firefox.json", written("firefox", {}));
}

// For pprof, see tests/readers/formats/check.py, as above. chrometrace only shows time.
TEST_CASE("a profile of bytes in each format", "[golden]") {
  const auto check = [](const char* format, const std::string& file) {
    golden::check(file, written(format, {}, Unit::bytes));
  };
  check("folded", "sample.bytes.folded");
  check("speedscope", "sample.bytes.speedscope.json");
  check("callgrind", "sample.bytes.callgrind");
  check("firefox", "sample.bytes.firefox.json");
  golden::check("sample.bytes.flamegraph.json", data_of(written("flamegraph", {}, Unit::bytes)));
  std::ostringstream difference;
  write_flamegraph_diff(sample_profile(Unit::bytes), sample_profile(Unit::bytes), {Compared::shares, 2, 0.003, 0.03},
                        {}, difference);
  golden::check("sample.bytes.flamegraph_diff.json", data_of(difference.str()));
}

// read.py of tests/readers/raw also reads these.
TEST_CASE("raw recordings, of time and of bytes", "[golden]") {
  golden::check("sample.luaspy", sample_recording(Unit::nanoseconds));
  golden::check("sample.bytes.luaspy", sample_recording(Unit::bytes));
}

TEST_CASE("frames of the kernel in each format", "[golden]") {
  const auto write = [](const char* format) {
    std::ostringstream out;
    find_format(format)->write(kernel_profile(), {}, out);
    return out.str();
  };
  golden::check("sample.kernel.folded", write("folded"));
  golden::check("sample.kernel.svg", write("svg"));
  golden::check("sample.kernel.speedscope.json", write("speedscope"));
  golden::check("sample.kernel.flamegraph.json", data_of(write("flamegraph")));
  golden::check("sample.kernel.callgrind", write("callgrind"));
  golden::check("sample.kernel.trace.json", write("chrometrace"));
  golden::check("sample.kernel.firefox.json", write("firefox"));
  golden::check("sample.kernel.luaspy", kernel_recording());
}

TEST_CASE("a raw recording keeps frames of the kernel, and modes hide what they should", "[golden]") {
  const auto read = [](Mode mode) {
    std::istringstream in(kernel_recording());
    const Result<Profile> profile = read_raw(in, {.mode = mode}, {});
    REQUIRE(profile);
    std::string text;
    for (const Frame& frame : profile->frames()) {
      if (frame.kind == Frame::Kind::kernel) text += describe(frame, false) + "; ";
    }
    return text;
  };
  CHECK(read(Mode::lua).empty());
  CHECK(read(Mode::merged) ==
        "read [kernel]; ext4_file_read_iter [ext4]; page_fault [kernel]; epoll_wait [kernel]; ep_poll [kernel]; ");
  CHECK(read(Mode::all).starts_with("do_syscall_64 [kernel]; read [kernel]; "));
}

TEST_CASE("a raw recording has the heaps, and a window begins with their sizes", "[golden]") {
  const auto heap = [](const RawWindow& window) {
    std::istringstream in(sample_recording(Unit::nanoseconds));
    const Result<Profile> profile = read_raw(in, {}, window);
    REQUIRE(profile);
    std::string text;
    for (const HeapTracks::Of& of : profile->heaps.states()) {
      for (const HeapTrack::Point& point : of.track.points())
        text += fmt::format("{} {} {} {}; ", point.start_ns / 1'000'000, point.last, name(point.phase), point.cycles);
    }
    return text;
  };
  CHECK(heap({}) ==
        "10 40000 pause 0; 20 90000 marking 0; 31 120000 sweeping 1; 40 60000 pause 1; 20 3000000 pause 0; ");
  CHECK(heap({25'000'000, 35'000'000, ""}) == "0 90000 marking 0; 6 120000 sweeping 1; 0 3000000 pause 0; ");
  CHECK(heap({45'000'000, {}, ""}) == "0 60000 pause 0; 0 3000000 pause 0; ");
  CHECK(heap({0, 5'000'000, ""}).empty());
}

TEST_CASE("reading a raw recording tells how far it is", "[golden]") {
  const std::string recording = sample_recording(Unit::nanoseconds);
  std::istringstream in(recording);
  std::int64_t last = 0;
  REQUIRE(read_raw(in, {}, {}, true, [&](std::int64_t bytes) {
    CHECK(bytes > last);
    last = bytes;
  }));
  CHECK(last == static_cast<std::int64_t>(recording.size()));
}

TEST_CASE("the same profile gives the same pprof, whenever it is written", "[golden]") {
  const std::string pprof = written("pprof", {});
  CHECK(pprof == written("pprof", {}));
  REQUIRE(pprof.size() > 8);
  CHECK(pprof.substr(0, 8) == std::string("\x1f\x8b\x08\0\0\0\0\0", 8));  // RFC 1952: no time, no name
}

TEST_CASE("a profile without a sample can be written", "[golden]") {
  for (const Format& format : formats()) {
    if (format.write == nullptr) continue;
    std::ostringstream out;
    format.write(Profile(), {}, out);
    if (format.extension.ends_with(".json")) CHECK(nlohmann::json::accept(out.str()));
  }
}

TEST_CASE("a function has one name in a profile, and every tick is counted", "[golden]") {
  const Profile profile = sample_profile();
  for (const Frame& frame : profile.frames()) CHECK(frame.name != "function");
  CHECK(profile.samples() == 6);
  CHECK(profile.losses(Loss::ended) == 1);
  CHECK(profile.total_losses() == 3);
  CHECK(profile.idle() == 1);
  const FunctionTable functions = functions_of(profile, false);
  const std::vector<Cost> all = costs(profile, functions, By::samples);
  REQUIRE(!all.empty());
  const std::uint32_t hottest = most_expensive(all, functions).front();
  CHECK(functions.functions[hottest].name == "work");
  CHECK(all[hottest].own == 3);
  CHECK(all[hottest].total == 4);
}

}  // namespace luaspy::golden_golden_test
