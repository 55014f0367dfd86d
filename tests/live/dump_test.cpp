// Why does it hang? The output of dump for programs that are stuck in typical ways.

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

#include "base/display_text.h"
#include "support/harness.h"

namespace luaspy::live::dump_test {
namespace {

std::string dump_text(const Running& running, Words options = {}) {
  options.insert(options.begin(), {"dump", "--pid", std::to_string(running.pid())});
  const Finished finished = luaspy(options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return finished.out;
}

void check_matches(const std::string& text, const std::string& pattern) {
  INFO(text << "\nshould match: " << pattern);
  CHECK(std::regex_search(text, std::regex(pattern)));
}

}  // namespace

TEST_CASE("a program that waits for its input", "[dump][smoke]") {
  const Folder folder;
  const std::string script = folder.write("ask.lua",
                                          "local function ask(question, ...)\n"
                                          "  io.write(question) io.flush()\n"
                                          "  return io.read()\n"
                                          "end\n"
                                          "ask('READY\\n', 1, nil)\n");
  Running running(lua({script}));
  running.read_until("READY");
  const auto dumped = [&] { return dump_text(running, {"--locals"}); };
  running.await("it reads", [&] { return dumped().find("waits in read(") != std::string::npos; });
  const std::string text = dumped();
  check_matches(text, "waits in read\\(fd 0: pipe:\\[\\d+\\]");
  check_matches(text, "io.read \\[C\\]\n");
  check_matches(text,
                "ask \\(.*ask.lua:3\\)\n        > return io.read\\(\\)\n        parameter question = \"READY\\\\n\"\n  "
                "      vararg    \\(vararg\\) 1 = 1\n        vararg    \\(vararg\\) 2 = nil\n");
  check_matches(text,
                "Lua 5.4.3-5.4.9 at 0x[0-9a-f]+: 0.0 MB of Lua objects; its garbage collector is in GCS[a-z]+ \\(");
  CHECK(text.find("held the running") == std::string::npos);  // a sleeping thread is not stopped
  CHECK(text.find("debug hook") == std::string::npos);
}

TEST_CASE("a program that is stuck in a C function", "[dump]") {
  const Folder folder;
  const std::string script = folder.write("match.lua",
                                          "local function search(text)\n"
                                          "  print('READY') io.flush()\n"
                                          "  return text:find(('.-'):rep(30) .. 'b')\n"
                                          "end\n"
                                          "search(('a'):rep(100))\n");
  Running running(lua({script}));
  running.read_until("READY");
  const std::string text = dump_text(running, {"--count", "3", "--interval", "0.2", "--locals"});
  check_matches(text, "parameter text = \"aaa");
  check_matches(text,
                "Process \\d+, 3 looks in \\d.\\d s\n    Thread \\d+ \".*\" works, [^;\n]*; always inside string.find "
                "\\[C\\], called by search \\(.*match.lua:1\\) at line 3\n");
}

TEST_CASE("a program that is slow because of a debug hook", "[dump]") {
  const Folder folder;
  const std::string script = folder.write("hook.lua",
                                          "debug.sethook(function() end, 'l') print('READY') io.flush() io.read()");
  const std::string name = GENERATE(as<std::string>{}, "debian-lua5.1-bookworm", "debian-lua5.4-bookworm",
                                    "debian-luajit-bookworm");
  Running running(lua({script}, name));
  running.read_until("READY");
  running.await("it reads", [&] { return dump_text(running).find("waits in read(") != std::string::npos; });
  check_matches(dump_text(running), "\n    a debug hook watches 1 of its coroutines\n");
  check_matches(dump_text(running, {"--coroutines"}), "\n    a debug hook watches 1 of its coroutines\n");
}

TEST_CASE("what stands for tail calls is explained where it is shown", "[dump]") {
  const Folder folder;
  const std::string script = folder.write("tail.lua",
                                          "local function wait() print('READY') io.flush() io.read() end\n"
                                          "local function ask() return wait() end\n"
                                          "ask()\n");
  Running running(lua({script}));
  running.read_until("READY");
  check_matches(dump_text(running),
                "\n    \\(\\.\\.\\.tail calls\\.\\.\\.\\): tail calls replaced callers here; which functions these "
                "were is not known\n    main chunk ");
}

TEST_CASE("functions that are one C function are called by what their callers call them", "[dump]") {
  const Folder folder;
  Running running({compile(folder, "trampoline", source_version("5.4"))});
  running.read_until("READY");
  running.await("it reads", [&] { return dump_text(running).find("waits in read(") != std::string::npos; });
  check_matches(dump_text(running), "\n    (things\\.)?wait_here \\[C\\]\n    f \\(");
}

TEST_CASE("two threads that wait for each other's locks", "[dump]") {
  const Folder folder;
  Running running({compile(folder, "deadlock", source_version("5.4"))});
  running.read_until("READY");
  const auto json = [&] { return dump(running.pid(), {"--locals"}); };
  running.await("both wait", [&] { return json().contains("deadlocks"); });
  const nlohmann::json look = json();
  REQUIRE(look.at("deadlocks").size() == 1);
  CHECK(look.at("deadlocks").at(0).size() == 2);
  int locked = 0;
  for (const nlohmann::json& thread : look.at("threads")) {
    if (!thread.at("wait").contains("mutex_owner")) continue;
    ++locked;
    CHECK(thread.at("wait").at("mutex_owner") != thread.at("tid"));
    const auto& frames = thread.at("frames");
    const auto take = std::find_if(frames.begin(), frames.end(),
                                   [](const nlohmann::json& frame) { return frame.at("name") == "take"; });
    REQUIRE(take != frames.end());
    const nlohmann::json& number = take->at("variables").at(0);
    CHECK(number.at("name") == "number");
    const auto work = take + 1;
    CHECK(work->at("line") == 6);
    std::map<std::string, std::string> values;
    for (const nlohmann::json& variable : work->at("variables")) values[variable.at("name")] = variable.at("value");
    CHECK(values.at("other") == number.at("value"));
    CHECK(values.at("mine") != number.at("value"));
  }
  CHECK(locked == 2);
  check_matches(dump_text(running),
                "\nDeadlock: thread (\\d+) waits for a mutex that thread (\\d+) holds, which waits for one that thread "
                "\\1 holds\n");
}

TEST_CASE("ten thousand waiting coroutines are some lines", "[dump]") {
  const Folder folder;
  const std::string script = folder.write(
      "forest.lua",
      "local all = {}\n"
      "local function receive() coroutine.yield() end\n"
      "local function worker() while true do receive() end end\n"
      "local function other() coroutine.yield() end\n"
      "for i = 1, 10000 do all[i] = coroutine.create(i % 4 == 0 and other or worker) coroutine.resume(all[i]) end\n"
      "all[0] = coroutine.create(worker)\n"
      "print('READY') io.flush()\n"
      "if arg[1] == 'wait' then io.read() end\n"
      "while true do for i = 1, 10000 do coroutine.resume(all[i]) if coroutine.status(all[i]) == 'dead' then all[i] = "
      "coroutine.create(other) coroutine.resume(all[i]) end end end\n");
  const std::string name = GENERATE(as<std::string>{}, "debian-lua5.1-bookworm", "debian-lua5.4-bookworm",
                                    "debian-luajit-bookworm");
  INFO(name);
  Running waiting(lua({script, "wait"}, name));
  waiting.read_until("READY");
  const std::string text = dump_text(waiting, {"--coroutines"});
  check_matches(text, "coroutines: 10000 suspended, 1 not started\n");
  check_matches(text,
                "\n7500 coroutines suspended, with body .*:3\\)\n    coroutine.yield \\[C\\]\n    .*receive.* "
                "\\(.*:2\\)\n        > .*\n    .* \\(.*:3\\)\n        > .*\n    at 0x[0-9a-f]+, 0x[0-9a-f]+, "
                "0x[0-9a-f]+ and 7497 more\n");
  check_matches(
      text,
      "\n2500 coroutines suspended, with body .*:4\\)\n    coroutine.yield \\[C\\]\n    .* \\(.*:4\\)\n        > ");
  CHECK(std::count(text.begin(), text.end(), '\n') < 60);

  Running working(lua({script, "work"}, name));
  working.read_until("READY");
  for (int look = 0; look < 5; ++look) {
    const nlohmann::json json = dump(working.pid(), {"--coroutines"});
    REQUIRE(json.at("states").size() == 1);
    const nlohmann::json& state = json.at("states").at(0);
    CHECK(state.at("complete") == true);
    CHECK(state.at("exact") == true);
    CHECK(!json.contains("disturbed"));
    CHECK(json.at("stood_still_ns") > 0);
    // One coroutine may have ended just before the next one begins.
    std::int64_t alive = 0;
    for (const char* const status : {"suspended", "running", "normal", "not started"})
      alive += state.at("coroutines").value(status, 0);
    CHECK(alive >= 10000);
    CHECK(alive <= 10002);
  }
}

TEST_CASE("30 handlers that wait in one function are told apart, and a failed one says why", "[dump]") {
  const Folder folder;
  const std::string script = folder.write("handlers.lua",
                                          "local function wait_for(fd, mode)\n"
                                          "  local answer = coroutine.yield(fd, mode)\n  return answer\n"
                                          "end\n"
                                          "local function handler(id)\n"
                                          "  local name = 'client ' .. id\n"
                                          "  wait_for(100 + id, 'read')\n"
                                          "  return name\n"
                                          "end\n"
                                          "local all = {}\n"
                                          "for i = 1, 30 do\n"
                                          "  all[i] = coroutine.create(handler) coroutine.resume(all[i], i)\n"
                                          "end\n"
                                          "all[31] = coroutine.create(function(t) return t.x.y end)\n"
                                          "coroutine.resume(all[31], {})\n"
                                          "print('READY') io.flush()\n"
                                          "if arg[1] == 'wait' then io.read() end\n"
                                          "while true do end\n");
  const std::string name = GENERATE(as<std::string>{}, "debian-lua5.1-bookworm", "debian-lua5.4-bookworm",
                                    "debian-luajit-bookworm");
  const std::string mode = GENERATE("wait", "work");
  INFO(name << ' ' << mode);
  Running running(lua({script, mode}, name));
  running.read_until("READY");
  const std::string text = dump_text(running, {"--coroutines", "--locals"});
  check_matches(text, "\n30 coroutines suspended, with body .*handlers.lua:5\\)\n");
  check_matches(text, "        > wait_for\\(100 \\+ id, 'read'\\)\n");
  check_matches(text,
                "\n1 coroutine failed, with body .*handlers.lua:14\\)\n    error: .*handlers.lua:14: attempt to "
                "index .*a nil value");
  for (int i = 1; i <= 30; ++i) {
    check_matches(
        text,
        fmt::format("    coroutine at 0x[0-9a-f]+\n(        coroutine.yield: .*\n)?        [^\n]*: fd = {}, mode = "
                    "\"read\"\n        [^\n]*: id = {}, name = \"client {}\"\n",
                    100 + i, i, i));
  }
  // What a collection has cleared since is not shown.
  check_matches(text, "coroutine.yield: \\(C argument\\) 1 = 1[0-3][0-9], \\(C argument\\) 2 = \"read\"\n");
  CHECK(text.find("1 = nil") == std::string::npos);
  const nlohmann::json json = dump(running.pid(), {"--coroutines", "--locals"});
  std::size_t details = 0;
  for (const nlohmann::json& group : json.at("states").at(0).at("groups")) {
    if (group.contains("details")) details += group.at("details").size();
    if (group.at("status") == "failed") CHECK(group.at("errors").size() == 1);
  }
  CHECK(details >= 31);
}

TEST_CASE("a table has the size that it has, or that could be counted", "[dump]") {
  const Folder folder;
  const std::string script = folder.write(
      "tables.lua",
      "local function wait(some, many, huge)\n"
      "  print('READY') io.flush() io.read()\n"
      "  return some, many, huge\n"
      "end\n"
      "local function filled(n) local t = {} for i = 1, n do t[i] = i end return t end\n"
      "wait(filled(20), filled(60000), filled(300000))\n");
  const std::string name = GENERATE(as<std::string>{}, "debian-lua5.1-bookworm", "debian-lua5.4-bookworm",
                                    "debian-luajit-bookworm");
  INFO(name);
  Running running(lua({script}, name));
  running.read_until("READY");
  const auto dumped = [&] { return dump_text(running, {"--locals"}); };
  running.await("it reads", [&] { return dumped().find("waits in read(") != std::string::npos; });
  const std::string text = dumped();
  check_matches(text, "some = \\{1, 2, 3, 4, 5, 6, 7, 8, …\\(12 more\\)\\}");
  check_matches(text, "many = \\{1, 2, 3, 4, 5, 6, 7, 8, …\\(59992 more\\)\\}");
  check_matches(text, "huge = \\{1, 2, 3, 4, 5, 6, 7, 8, …\\([0-9]+ more counted, but not all\\)\\}");
}

TEST_CASE("on a terminal dump has colours and fits its width; NO_COLOR is honoured", "[dump]") {
  Running running(lua({"-e", "print('READY') io.flush() io.read()"}));
  running.read_until("READY");
  const auto on_terminal = [&](const std::string& environment) {
    return run({"script", "-qec",
                fmt::format("stty cols 50; env {} TERM=xterm '{}' dump --pid {}", environment, luaspy_program,
                            running.pid()),
                "/dev/null"})
        .out;
  };
  const std::string coloured = on_terminal("-u NO_COLOR"), plain = on_terminal("NO_COLOR=1");
  INFO(coloured);
  CHECK(coloured.find("\x1b[1;36mThread ") != std::string::npos);
  CHECK(plain.find('\x1b') == std::string::npos);
  std::istringstream lines(plain);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(' ', line.find_first_not_of(' ')) != std::string::npos) CHECK(columns(line) <= 51);  // with its "\r"
  }
  CHECK(dump_text(running, {}).find('\x1b') == std::string::npos);
}

}  // namespace luaspy::live::dump_test
