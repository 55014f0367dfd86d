// Whose files a recording carries: those that the process itself may read, by the names that it uses.

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "input/raw_reader.h"
#include "support/harness.h"

namespace luaspy::live::sources_test {
namespace {

// Runs for a while, in a function of a chunk that it calls `chunk`.
std::string script_of(const std::string& chunk) {
  return fmt::format(
      "local f = assert(load('local x = 0 for i = 1, 1e5 do x = x + i % 7 end return x', '@{}'))\n"
      "local function outer() return (f()) end\n"
      "while os.clock() < 0.5 do outer() end\n",
      chunk);
}

std::map<std::string, Profile::Source> sources_of(const Folder& folder, const Words& command,
                                                  const std::string& directory = {}) {
  const std::string path = folder.path("sources.luaspy");
  Words words = {luaspy_program, "record", "-f", "raw", "-o", path, "--"};
  if (!directory.empty()) words = Words{"env", "-C", directory} + words;
  const Finished finished = run(words + command);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  std::ifstream in(path, std::ios::binary);
  const Result<Profile> profile = read_raw(in, {});
  REQUIRE(profile);
  return profile->sources;
}

}  // namespace

// A target names its chunks as it likes. As root luaspy can read more than the target; the user of a
// target may read what luaspy may if luaspy is not root.
TEST_CASE("a recording carries no file that its program may not read", "[sources]") {
  const bool root = ::geteuid() == 0;
  const Words as_other = root ? Words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"} : Words{};
  const Folder folder;
  std::filesystem::create_directory(folder.path("private"));
  const std::string open = folder.write("private/open.txt", "everybody may read this, and not come here\n");
  const std::string closed = folder.write("closed.txt", "only its owner may read this\n", 0600);
  const std::string common = folder.write("common.txt", "everybody may read this\n");
  REQUIRE(::chmod(folder.path("private").c_str(), 0700) == 0);
  for (const std::string& text : {open, closed, common}) {
    INFO(text);
    const std::string main = folder.write("main.lua", script_of(text));
    const auto found = sources_of(folder, as_other + lua_for_all(folder, {main}));
    CHECK(found.contains(main));
    CHECK(found.contains(text) == (!root || text == common));
  }
  // A process can use its working directory even if it may not search what is above it.
  std::filesystem::create_directory(folder.path("private/work"));
  folder.write("private/work/here.txt", "in the working directory\n");
  const std::string main = folder.write("main.lua", script_of("here.txt"));
  CHECK(sources_of(folder, as_other + lua_for_all(folder, {main}), folder.path("private/work")).contains("here.txt"));
}

TEST_CASE("a relative name is a file of the process that uses it", "[sources]") {
  const Folder folder;
  for (const char* const name : {"one", "two"}) std::filesystem::create_directory(folder.path(name));
  const std::string work = "local function work() local x = 0 for i = 1, 1e5 do x = x + i % 7 end return x end\n";
  const std::string one = work + "while os.clock() < 0.6 do work() end -- one\n";
  folder.write("main.lua", "-- that of the shell\n" + work);
  folder.write("one/main.lua", one);
  folder.write("two/main.lua", work + "while os.clock() < 0.6 do work() end -- two\n");
  std::string command;
  for (const std::string& word : lua({"main.lua"})) command += "'" + word + "' ";
  const auto alone = sources_of(folder, {"sh", "-c", "(cd one && " + command + "); true"}, folder.path());
  REQUIRE(alone.contains("main.lua"));
  CHECK(alone.at("main.lua").text == one);
  // Two files of one name: neither is shown for the other.
  const std::string both = "(cd one && " + command + "); (cd two && " + command + "); true";
  CHECK(sources_of(folder, {"sh", "-c", both}, folder.path()).empty());
  const std::string twice = "(cd one && " + command + "); (cd one && " + command + "); true";
  CHECK(sources_of(folder, {"sh", "-c", twice}, folder.path()).contains("main.lua"));
}

TEST_CASE("a file that was written while its program ran is told to have changed", "[sources]") {
  const Folder folder;
  const std::string text = folder.path("late.txt");
  // It exists when luaspy reads it only because the program has written it: at its end, for luaspy to
  // find it after the process.
  const std::string main = folder.write(
      "main.lua", "local f = assert(load('local x = 0 for i = 1, 1e5 do x = x + i % 7 end return x', '@" + text +
                      "'))\nwhile os.clock() < 0.3 do f() end\nio.open('" + text + "', 'w'):write('new'):close()\n");
  const auto found = sources_of(folder, lua({main}));
  REQUIRE(found.contains(text));
  CHECK(found.at(text).changed);
  CHECK(!found.at(main).changed);
}

}  // namespace luaspy::live::sources_test
