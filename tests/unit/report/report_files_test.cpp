// report from end to end: which files it reads and writes.

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "input/raw_reader.h"
#include "output/flamegraph.h"
#include "output/raw.h"
#include "report/profile_diff.h"
#include "report/report.h"
#include "support/raw_file.h"
#include "support/sample_profile.h"

namespace luaspy::report_files_test {
namespace {

class Folder {
 public:
  Folder() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_ = "/tmp/luaspy-test-XXXXXX";
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  if (in.peek() != std::ifstream::traits_type::eof()) out << in.rdbuf();
  return out.str();
}

std::string carried_by(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return raw_bytes(in, raw::most_carried);
}

std::string error_of(const ReportOptions& options) {
  const Result<int> done = report(options);
  return done ? "" : done.error().text;
}

// A recording of 4,000 samples, all of them in luaV_execute, `share` percent of these in `work`.
std::string interpreted(unsigned share) {
  EventTables tables;
  StackTable& stacks = tables.stacks;
  const ThreadId thread = tables.threads.intern({1, "main", 1, "lua"});
  std::ostringstream out;
  Frame execute = native("luaV_execute", "lua5.4");
  execute.part = Frame::Part::vm;
  std::vector<StackId> ids;
  RawWriter writer(tables, Unit::nanoseconds, out);
  const StackId chunk = stacks.intern({empty_stack, stacks.intern(lua("main chunk", "a.lua", 0, 9))});
  for (const char* const name : {"work", "play"}) {
    const StackId function = stacks.intern({chunk, stacks.intern(lua(name, "a.lua", name[0] % 5 + 1, 9))});
    ids.push_back(stacks.intern({function, stacks.intern(execute)}));
  }
  for (std::int64_t i = 1; i <= 4000; ++i) {
    Sample sample;
    sample.quality.stacks = 1;
    sample.stack = ids[static_cast<unsigned>(i * 37 % 100) < share ? 0 : 1];
    writer.sample(thread, {i * 1'000'000, 1'000'000}, sample);
  }
  Metadata about;
  about.duration_ns = 4'000'000'000, about.complete = true;
  writer.about(about);
  writer.flush();
  return out.str();
}

// Writes the bytes into a pipe while `read` reads it.
template <typename Read>
void through_pipe(const std::string& path, const std::string& bytes, const Read& read) {
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
  read();
  writer.join();
  ::unlink(path.c_str());
}

}  // namespace

TEST_CASE("the page of a difference shows as a change what the text may call one", "[unit]") {
  const Folder folder;
  const std::string before = folder.write("before.luaspy", interpreted(50)),
                    after = folder.write("after.luaspy", interpreted(52)), page = folder.path("diff.html");
  ReportOptions options;
  options.diff = {before, after};
  options.output = page;
  REQUIRE(report(options));
  const std::string text = bytes_of(page);
  const std::size_t at = text.find("\"comparison\":");
  REQUIRE(at != std::string::npos);
  const nlohmann::json comparison = nlohmann::json::parse(text.substr(at + 13, text.find('}', at) - at - 12));
  INFO(comparison.dump());
  CHECK(comparison.at("noise").get<double>() > 3);
  CHECK(comparison.at("least_difference") == least_difference);
  CHECK(comparison.at("least_ratio") == least_ratio);
  const auto shown = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::move(*read_raw(in, {}));
  };
  const ProfileDiff diff = profile_diff(shown(before), shown(after), {});
  CHECK(diff.rows.size() >= 2);
  CHECK(std::abs(comparison.at("noise").get<double>() - diff.noise) < 0.01 * diff.noise);
  // All frames are in the page, nevertheless.
  CHECK(text.find("luaV_execute") != std::string::npos);
}

TEST_CASE("what cannot be taken out of a page is told", "[unit]") {
  const Folder folder;
  ReportOptions options;
  options.format = "raw";
  options.output = folder.path("out.luaspy");
  options.files = {folder.path("nope.luaspy")};
  CHECK(error_of(options).find("Cannot read " + options.files.front()) == 0);
  options.files = {folder.write("raw.luaspy", sample_recording(Unit::nanoseconds))};
  CHECK(error_of(options).find("already in the raw format") != std::string::npos);
  // More than luaspy puts into a page, in records that it skips.
  std::string recording = sample_recording(Unit::nanoseconds);
  const std::string block = raw_block(raw_record(0x7f, std::string(1 << 20, '\0')));
  while (recording.size() <= raw::most_carried) recording += block;
  options.files = {folder.path("large.html")};
  {
    std::ofstream page(options.files.front(), std::ios::binary);
    write_flamegraph(sample_profile(), {.recording = recording}, page);
  }
  CHECK(error_of(options).find("more than 64 MiB") != std::string::npos);
  CHECK(!std::filesystem::exists(options.output));
}

// Files of other profilers, from end to end: their readers have tests of their own.
TEST_CASE("files of other profilers are reported and converted like recordings", "[unit]") {
  const Folder folder;
  const auto written = [&](const std::vector<std::string>& files, const std::string& format) {
    ReportOptions options;
    options.files = files, options.format = format, options.output = folder.path("out");
    const Result<int> done = report(options);
    return done ? bytes_of(options.output) : done.error().text;
  };
  const std::string recording = folder.write("a.luaspy", sample_recording(Unit::nanoseconds)),
                    folded = written({recording}, "folded"),
                    pprof = folder.write("named.html", written({recording}, "pprof")),
                    stacks = folder.write("b.bin", folded);
  CHECK(written({pprof}, "folded") == folded);
  CHECK(written({stacks}, "folded") == folded);
  for (const std::string_view format : {"flamegraph", "svg", "speedscope", "pprof", "otlp", "callgrind", "firefox"})
    CHECK(written({stacks}, std::string(format)).size() > 300);
  // It becomes a recording, which gives the same again; a page does not carry the other file.
  const std::string raw = folder.write("raw", written({pprof}, "raw"));
  CHECK(bytes_of(raw).starts_with(raw::magic));
  CHECK(written({raw}, "folded") == folded);
  CHECK(carried_by(folder.write("page", written({pprof}, "flamegraph"))).empty());
  CHECK(written({folder.write("many", "a 10000001\n")}, "raw").find("more than 10000000 samples") != std::string::npos);
  // Several; of different units; without times.
  CHECK(written({stacks, stacks}, "folded").find("work (app/main.lua:10) 6\n") != std::string::npos);
  CHECK(written({stacks, pprof}, "folded").find("they cannot be added up") != std::string::npos);
  CHECK(written({pprof}, "chrometrace").find("which " + pprof + " does not say") != std::string::npos);
  ReportOptions part;
  part.files = {pprof}, part.from = 1, part.output = folder.path("part.txt");
  CHECK(error_of(part).find("does not say when its samples were") != std::string::npos);
  CHECK(written({folder.write("torn", "no number\n")}, "folded").find("This is nothing that luaspy reads.") !=
        std::string::npos);
  CHECK(written({folder.write("zero", "a 0\nb\n")}, "folded").find("It is damaged: line 2: no number at its end.") !=
        std::string::npos);
}

TEST_CASE("the report of a file of another profiler says what it is, and where it is damaged", "[unit]") {
  const Folder folder;
  ReportOptions options;
  options.files = {folder.write("a.folded", "main;work (a.lua:3) 30\nmain;rest 10\nmain;re")};
  options.output = folder.path("out.txt");
  REQUIRE(report(options));
  const std::string text = bytes_of(options.output);
  INFO(text);
  CHECK(text.starts_with("a.folded: folded stacks, 40 samples of 1 thread\n"));
  CHECK(text.find("the file is damaged: line 3: no number at its end; this is what comes before\n") !=
        std::string::npos);
  CHECK(text.find("times a second") == std::string::npos);
  CHECK(text.find("75.0") != std::string::npos);
}

TEST_CASE("a file that only counts can be compared with a recording of its kind", "[unit]") {
  const Folder folder;
  ReportOptions options;
  options.output = folder.path("diff.txt");
  options.diff = {folder.write("before", "m;f (a.lua:1) 600\nm;g (a.lua:9) 400\n"),
                  folder.write("after", "m;f (a.lua:1) 300\nm;g (a.lua:9) 700\n")};
  REQUIRE(report(options));
  const std::string text = bytes_of(options.output);
  INFO(text);
  CHECK(text.find("larger share") != std::string::npos);
  CHECK(text.find("too short") == std::string::npos);
  CHECK(text.find("600 samples") == std::string::npos);
  options.diff[1] = options.diff[0];
  REQUIRE(report(options));
  CHECK(bytes_of(options.output).find("larger share +") == std::string::npos);
}

TEST_CASE("a part of a recording is a recording", "[unit]") {
  const Folder folder;
  const std::string whole = folder.write("whole.luaspy", sample_recording(Unit::nanoseconds));
  const auto shown = [&](ReportOptions options, const std::string& file) {
    options.files = {file};
    options.json = true;
    options.output = folder.path("shown.json");
    REQUIRE(error_of(options).empty());
    nlohmann::json json = nlohmann::json::parse(bytes_of(options.output));
    json.at("recording").erase("file");
    return json;
  };
  const std::vector<std::function<void(ReportOptions&)>> choices = {
      [](ReportOptions& options) { options.from = 0.01; },
      [](ReportOptions& options) { options.to = -0.01; },
      [](ReportOptions& options) { options.from = 0.005, options.to = 0.03; },
      [](ReportOptions& options) { options.thread = "lua5.4"; },
      [](ReportOptions& options) { options.shape.only = "work"; },
      [](ReportOptions& options) { options.shape.ignore = "work"; }};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    INFO("choice " << i);
    ReportOptions options;
    choices[i](options);
    const nlohmann::json asked = shown(options, whole);
    options.files = {whole};
    options.format = "raw";
    options.output = folder.path("part.luaspy");
    REQUIRE(error_of(options).empty());
    const nlohmann::json part = shown({}, options.output);
    CHECK(part.at("recording").at("samples").get<int>() > 0);
    CHECK(part == asked);
  }
  ReportOptions none;
  none.files = {whole}, none.format = "raw", none.output = folder.path("none.luaspy"), none.shape.only = "no such name";
  CHECK(error_of(none).find("leave no sample") != std::string::npos);
  CHECK(!std::filesystem::exists(none.output));
}

TEST_CASE("a page of a recording carries it up to 64 MiB", "[unit]") {
  const Folder folder;
  const std::string small = sample_recording(Unit::nanoseconds);
  const std::string block = raw_block(raw_record(0x7f, std::string(1 << 20, '\0')));
  std::string large = small;
  while (large.size() <= raw::most_carried) large += block;
  ReportOptions options;
  options.output = folder.path("page.html");
  options.files = {folder.write("small.luaspy", small)};
  REQUIRE(report(options));
  CHECK(carried_by(options.output) == small);
  options.files = {folder.write("large.luaspy", large)};
  REQUIRE(report(options));
  CHECK(carried_by(options.output).empty());
}

TEST_CASE("a recording that comes through a pipe is kept as far as it is needed again", "[unit]") {
  const Folder folder;
  const std::string recording = sample_recording(Unit::nanoseconds);
  ReportOptions options;
  options.files = {folder.path("pipe")};
  options.output = folder.path("page.html");
  through_pipe(options.files.front(), recording, [&] { REQUIRE(report(options)); });
  CHECK(carried_by(options.output) == recording);
  // With what comes after an end that report does not read beyond.
  const std::string damaged = recording + raw_block("x") + std::string(300'000, 'y');
  through_pipe(options.files.front(), damaged, [&] { REQUIRE(report(options)); });
  CHECK(carried_by(options.output) == damaged);
  // A time before the end is known only when the end was read.
  options.from = -0.01;
  options.output = folder.path("part.txt");
  through_pipe(options.files.front(), recording, [&] { CHECK(error_of(options).empty()); });
  std::string large = recording;
  while (large.size() <= raw::most_carried) large += raw_block(raw_record(0x7f, std::string(1 << 20, '\0')));
  through_pipe(options.files.front(), large,
               [&] { CHECK(error_of(options).find("save it in a file") != std::string::npos); });
  options.from.reset();
  through_pipe(options.files.front(), large, [&] { CHECK(error_of(options).empty()); });
}

}  // namespace luaspy::report_files_test
