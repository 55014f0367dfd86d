// The files of a recording: while it runs, after luaspy was killed, their names, and what is left
// out.

#include <signal.h>

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>

#include "input/raw_reader.h"
#include "support/harness.h"

namespace luaspy::live::record_test {
namespace {

const char* const script =
    "local function add(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
    "local function join(n) local t = {} for i = 1, n do t[i] = tostring(i) end return #table.concat(t) end\n"
    "print('READY') io.flush()\n"
    "while true do add(20000) join(1000) end\n";

// A program of two functions that work by turns.
class TwoFunctions {
 public:
  explicit TwoFunctions(const std::string& name) : running_(command(name)) { running_.read_until("READY"); }
  std::string pid() const { return std::to_string(running_.pid()); }
  bool alive() const { return running_.alive(); }

 private:
  Words command(const std::string& name) {
    Words words = target(name).command;
    words.push_back(folder_.write("two.lua", script));
    return words;
  }
  Folder folder_;
  Running running_;
};

bool has(const FoldedStack& stack, const std::string& start) {
  return std::ranges::any_of(stack.frames, [&](const std::string& frame) { return frame.starts_with(start); });
}

std::uintmax_t size_of(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

}  // namespace

TEST_CASE("a killed luaspy leaves a raw recording that is whole up to its last flush", "[record][smoke]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  const std::string path = folder.path("raw.luaspy");
  Running luaspy({luaspy_program, "record", "-r", "500", "--every", "0.2", "-o", path, "--pid", target.pid()});
  const std::uintmax_t head = 8;
  luaspy.await("something is flushed", [&] { return size_of(path) > head; });
  const std::uintmax_t first = size_of(path);
  luaspy.await("more is flushed", [&] { return size_of(path) > first + 1000; });  // bytes: many samples, even on a slow
                                                                                  // machine
  ::kill(luaspy.pid(), SIGKILL);
  luaspy.wait();
  std::ifstream file(path, std::ios::binary);
  const Result<Profile> profile = read_raw(file, {.lines = true});
  REQUIRE(profile);
  CHECK(profile->samples() > 20);
  CHECK(!profile->about.complete);
  CHECK(profile->about.pid == std::stoi(target.pid()));
  CHECK(profile->about.command.ends_with("two.lua"));
  CHECK(profile->about.luas.size() == 1);
  CHECK(profile->weight() <= profile->about.duration_ns);
  CHECK(profile->about.duration_ns >= 200'000'000);
  CHECK(std::ranges::any_of(profile->frames(),
                            [](const Frame& frame) { return frame.name == "add" && frame.line == 1; }));
  CHECK(target.alive());
}

TEST_CASE("a file that is written while recording is whole whenever it is read", "[record]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  const std::string path = folder.path("profile.speedscope.json");
  Running luaspy({luaspy_program, "record", "--every", "0.2", "-o", path, "--pid", target.pid()});
  std::size_t samples = 0, versions = 0;
  luaspy.await("three versions", [&] {
    const std::string text = read_file(path);
    if (text.empty()) return versions >= 3;                   // not written yet
    const nlohmann::json json = nlohmann::json::parse(text);  // throws if it is truncated
    const std::size_t now = json.at("profiles").at(0).at("samples").size();
    CHECK(now >= samples);
    versions += now > samples;
    samples = now;
    return versions >= 3;
  });
  ::kill(luaspy.pid(), SIGTERM);
  CHECK(luaspy.wait() == 0);
  CHECK(nlohmann::json::parse(read_file(path)).at("profiles").at(0).at("samples").size() >= samples);
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) files += file.exists();
  CHECK(files == 1);  // nothing is left of the versions
}

TEST_CASE("each time has a file of its own if its name has the time in it", "[record]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  for (const std::string ending : {"luaspy", "html"}) {
    const Finished finished = luaspy({"record", "-r", "500", "-d", "3500 fortnights", "--pid", target.pid()});
    CHECK(finished.status == 2);  // no unit
    const Finished recorded = luaspy({"record", "-r", "500", "-d", "3.5s", "--every", "1.5s", "-o",
                                      folder.path("prof-%t-%p." + ending), "--pid", target.pid()});
    INFO(recorded.err);
    CHECK(recorded.status == 0);
    std::vector<double> seconds;
    for (const std::string& name : folder.names()) {
      if (!name.ends_with(ending)) continue;
      const std::string start = "prof-20", end = "-" + target.pid() + "." + ending;
      CHECK(name.starts_with(start));
      CHECK(name.ends_with(end));
      CHECK(name.size() == std::string("prof-20261126-041752").size() + end.size());
      std::ifstream file(folder.path(name), std::ios::binary);
      const Result<Profile> profile = read_raw(file, {});
      REQUIRE(profile);
      CHECK(profile->about.complete);
      CHECK(profile->samples() > 20);
      seconds.push_back(static_cast<double>(profile->about.duration_ns) / 1e9);
    }
    REQUIRE(seconds.size() == 3);
    CHECK(seconds[0] == Approx(1.5).margin(0.3));
    CHECK(seconds[1] == Approx(1.5).margin(0.3));
    CHECK(seconds[2] == Approx(0.5).margin(0.3));
  }
}

TEST_CASE("a page that is written while recording carries what was recorded until then", "[record]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  const std::string path = folder.path("page.html");
  Running luaspy({luaspy_program, "record", "--every", "0.2", "--only", "add", "-o", path, "--pid", target.pid()});
  std::int64_t samples = 0;
  int versions = 0;
  const auto look = [&] {
    std::istringstream page(read_file(path));
    if (page.view().empty()) return;  // not written yet
    const Result<Profile> profile = read_raw(page, {});
    REQUIRE(profile);
    CHECK(profile->samples() >= samples);
    versions += profile->samples() > samples;
    samples = profile->samples();
  };
  luaspy.await("three versions", [&] { return look(), versions >= 3; });
  ::kill(luaspy.pid(), SIGTERM);
  CHECK(luaspy.wait() == 0);
  look();
  std::istringstream page(read_file(path));
  const Result<Profile> profile = read_raw(page, {});
  REQUIRE(profile);
  CHECK(profile->about.complete);
  CHECK(profile->losses(Loss::left_out) != 0);
  for (const Frame& frame : profile->frames()) CHECK(frame.name != "join");
}

TEST_CASE("samples that were not asked for are left out, and told", "[record]") {
  const TwoFunctions target(lua54);
  const auto recorded = [&](const Words& options) {
    Words words = {"record", "-f", "folded", "-o", "-", "-d", "1", "--pid", target.pid()};
    words.insert(words.end(), options.begin(), options.end());
    const Finished finished = luaspy(words);
    REQUIRE(finished.status == 0);
    return finished;
  };
  const Finished only = recorded({"--only", "^add \\("}), ignore = recorded({"--ignore", "^(add|tostring) "});
  REQUIRE(!parse_folded(only.out).empty());
  REQUIRE(!parse_folded(ignore.out).empty());
  for (const FoldedStack& stack : parse_folded(only.out)) CHECK(has(stack, "add ("));
  for (const FoldedStack& stack : parse_folded(ignore.out)) {
    CHECK(!has(stack, "add ("));
    CHECK(!has(stack, "tostring [C]"));
  }
  for (const Finished& finished : {only, ignore}) CHECK(finished.err.find(" left out as asked") != std::string::npos);
  // No regular expression, so a text: each frame of Lua has it.
  CHECK(recorded({"--only", "("}).err.find("left out as asked") == std::string::npos);
}

// Trying one way after another would take 2^60 steps for this name.
TEST_CASE("no pattern makes luaspy slow", "[record]") {
  const Folder folder;
  const std::string name(60, 'a'), pattern = "(a+)+b", raw = folder.path("long.luaspy");
  const std::string file = folder.write(
      "long.lua", fmt::format("function {0}() local x = 0 for i = 1, 1e5 do x = x + i end return x end\n"
                              "while os.clock() < 0.5 do {0}() end",
                              name));
  Words command = {"record", "--ignore", pattern, "-o", raw, "--"};
  for (const std::string& word : target(lua54).command) command.push_back(word);
  command.push_back(file);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(luaspy(command).status == 0);
  CHECK(luaspy({"report", raw, "--only", name}).out.find(name) != std::string::npos);
  CHECK(luaspy({"report", raw, "--ignore", pattern}).status == 0);
  CHECK(luaspy({"report", raw, "--only", pattern}).status == 11);
  CHECK(luaspy({"report", raw, "--function", pattern}).status == 2);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("the collector is a frame of its own if that is asked for", "[record]") {
  const Folder folder;
  Words command = command_of(target(luajit), Jit::off);
  command.push_back(
      folder.write("garbage.lua", "print('READY') io.flush() local t while true do t = {{}, {}, {}} end"));
  Running running(command);
  running.read_until("READY");
  const Finished finished = luaspy(
      {"record", "--gc", "-f", "folded", "-o", "-", "-d", "1", "-r", "500", "--pid", std::to_string(running.pid())});
  std::int64_t collecting = 0, all = 0;
  for (const FoldedStack& stack : parse_folded(finished.out)) {
    for (std::size_t i = 0; i + 1 < stack.frames.size(); ++i) CHECK(stack.frames[i] != "[garbage collector]");
    all += stack.count;
    if (stack.frames.back() == "[garbage collector]") collecting += stack.count;
  }
  INFO(collecting << " of " << all);
  CHECK(collecting > all / 20);
  CHECK(collecting < all);
}

TEST_CASE("a recording that nobody named overwrites none", "[record]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  for (int i = 0; i < 2; ++i)
    CHECK(run({"env", "-C", folder.path(), luaspy_program, "record", "-d", "0.2", "--pid", target.pid()}).status == 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  const std::string name = fmt::format("luaspy-lua5.4-{}", target.pid());
  CHECK(names == std::vector<std::string>{name + "-2.html", name + ".html"});
}

TEST_CASE("a launched program is called by its own command, when a wrapper has executed it and when it has ended",
          "[record]") {
  const Folder folder;
  const std::string file = folder.write("short.lua", "local t = os.clock() while os.clock() - t < 0.5 do end"),
                    path = folder.path("profile.speedscope.json");
  Words command = {"record", "-o", path, "--", "/usr/bin/env"};
  for (const std::string& word : target(lua54).command) command.push_back(word);
  command.push_back(file);
  CHECK(luaspy(command).status == 0);
  const std::string name = nlohmann::json::parse(read_file(path)).at("name");
  INFO(name);
  CHECK(name.ends_with("bin/lua5.4 " + file));
  CHECK(name.find("env") == std::string::npos);
}

TEST_CASE("a terminal sees how far the recording is", "[record]") {
  const TwoFunctions target(lua54);
  const Folder folder;
  const Finished finished = run(
      {"env", "TERM=xterm", "script", "-qec",
       fmt::format("'{}' record -d 2 -o '{}' --pid {}", luaspy_program, folder.path("profile.folded"), target.pid()),
       "/dev/null"});
  CHECK(finished.status == 0);
  INFO(finished.out);
  CHECK(std::regex_search(finished.out, std::regex("\r\\[#{8,16}\\.{8,16}\\] 1 s left, [0-9]+ samples")));
  CHECK(finished.out.find("\r\x1b[K") != std::string::npos);
  CHECK(finished.out.find("written: ") != std::string::npos);
}

}  // namespace luaspy::live::record_test
