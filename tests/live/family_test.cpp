// Several processes, several looks, and luaspy itself stopped.

#include <signal.h>

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::family_test {
namespace {

std::string word(const Words& words) {
  std::string text;
  for (const std::string& each : words) text += '\'' + each + "' ";
  return text;
}

char state_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos ? '?' : stat.at(end + 2);
}

// Functions by the process in which they were seen, "[process PID COMMAND]".
std::map<std::string, std::set<std::string>> functions_by_process(const std::string& folded) {
  std::map<std::string, std::set<std::string>> seen;
  for (const FoldedStack& stack : parse_folded(folded)) {
    for (const std::string& frame : stack.frames) seen[stack.frames.front()].insert(frame.substr(0, frame.find(' ')));
  }
  return seen;
}

// Most of it, some 0.9 on a quiet machine. On a busy one luaspy hears of births late; it says then how much it saw.
bool is_sampled(const Finished& recorded, double samples, double expected) {
  const bool says = recorded.err.find("doubtful: only ") != std::string::npos;
  return samples > (says ? 0.3 : 0.6) * expected;
}

}  // namespace

TEST_CASE("record follows processes that a shell starts, and its exit status stays", "[family]") {
  const Folder folder;
  const std::string script = folder.write(
      "work.lua",
      "local function spin() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end\n"
      "local function work() while os.clock() < 1 do spin() end end\n"
      "_G[arg[1]] = function() work() return 0 end\n"
      "_G[arg[1]]()\n");
  const std::string lua = word(target(lua54).command) + '\'' + script + "' ";
  const Finished recorded = luaspy(
      {"record", "-s", "-f", "folded", "-o", "-", "--", "sh", "-c", lua + "alpha & " + lua + "beta; wait; exit 7"});
  INFO(recorded.err << recorded.out);
  CHECK(recorded.status == 7);
  int with_alpha = 0, with_beta = 0;
  for (const auto& [process, functions] : functions_by_process(recorded.out)) {
    CHECK(process.starts_with("[process "));
    with_alpha += process.ends_with("alpha]") && functions.contains("spin");
    with_beta += process.ends_with("beta]") && functions.contains("spin");
  }
  CHECK(with_alpha == 1);
  CHECK(with_beta == 1);
}

// A server's master, or a wrapper: the user has named the process that waits.
TEST_CASE("a target that only waits for its child is told which one works, and what to type", "[family]") {
  const Folder folder;
  const std::string worker = folder.write("worker.lua",
                                          "io.write('READY\\n') io.flush()\n"
                                          "local x = 0 while os.clock() < 10 do x = x + 1 end\n");
  const std::string master = folder.write("master.lua", "os.execute(arg[1])\n");
  Running running(lua({master, "exec " + word(target(lua54).command) + "'" + worker + "'"}));
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid());
  const Finished recorded = luaspy({"record", "--pid", pid, "-d", "0.5", "-o", folder.path("none.html")});
  const Finished watched = luaspy({"top", "--pid", pid, "--batch", "--count", "1", "--interval", "0.6"});
  const std::regex says(
      "Its child ([0-9]+) \\(.*\\) runs Lua 5\\.4\\.4 at ([0-9]+) % CPU: luaspy (record|top) "
      "--pid ([0-9]+), or -s --pid " +
      pid + " for all of them\\.");
  std::smatch match;
  INFO(recorded.err << watched.out);
  REQUIRE(std::regex_search(recorded.err, match, says));
  CHECK(match[1] == match[4]);
  CHECK(std::stoi(match[2]) > 10);
  const std::string worker_pid = match[1];
  std::string one_line = std::regex_replace(watched.out, std::regex("\\s+"), " ");
  CHECK(std::regex_search(one_line, says));
  CHECK(luaspy({"record", "--pid", worker_pid, "-d", "0.3", "-f", "folded", "-o", "-"}).status == 0);
  ::kill(std::stoi(worker_pid), SIGKILL);
  running.wait();
}

// One after the other: none lives when /proc is looked at again.
TEST_CASE("processes that live for some ms are sampled as long as they run", "[family]") {
  const Folder folder;
  const std::string script = folder.write(
      "burn.lua",
      "local function spin() local sum = 0 for i = 1, 1e4 do sum = sum + i % 7 end return sum end\n"
      "local function burn() while os.clock() < tonumber(arg[1]) do spin() end end\n"
      "burn()\n");
  const auto record = [&](double first, int count, double seconds) {
    const std::string lua = fmt::format("{} '{}'", word(target(lua54).command), script);
    const std::string loop = fmt::format("{0} {1}; i=0; while [ $i -lt {2} ]; do {0} {3}; i=$((i+1)); done", lua, first,
                                         count, seconds);
    return Words{"record", "-s", "-r", "200", "-f", "folded", "-o", "-", "--", "sh", "-c", loop};
  };
  const auto burns = [](const Finished& recorded) {
    double samples = 0;
    for (const FoldedStack& stack : parse_folded(recorded.out)) {
      if (std::ranges::any_of(stack.frames, [](const std::string& frame) { return frame.starts_with("burn "); }))
        samples += static_cast<double>(stack.count);
    }
    return samples;
  };
  const std::regex sampled("sampled: ([0-9]+) % of the ([0-9.]+) s of CPU time");
  constexpr double start = 0.3;  // s: what a slow luaspy misses of a command
  std::smatch match;
  {
    constexpr int count = 60;
    constexpr double each = 0.03, expected = count * each * 200;  // seconds, samples
    const Finished recorded = luaspy(record(0, count, each));
    INFO(recorded.err);
    CHECK(recorded.status == 0);
    CHECK(is_sampled(recorded, burns(recorded), expected));  // without births, 0.2
    CHECK(burns(recorded) < 1.2 * expected);
    REQUIRE(std::regex_search(recorded.err, match, sampled));
    CHECK(std::stod(match[2]) > 0.9 * count * each - start);
    CHECK(std::stod(match[2]) < 1.7 * count * each);  // the start of each takes some time, too
  }
  // Where the kernel does not tell of births, it says what it did not see. On a busy machine they live for long; on a
  // quiet one, none may be seen but the first.
  constexpr int count = 200;
  constexpr double first = 0.3, each = 0.005, expected = count * each * 200;
  const std::string confine = compile(folder, "confine");
  const Finished blind = run(Words{confine, "perf_event_open=EACCES", "--", luaspy_program} +
                             record(first, count, each));
  INFO(blind.err);
  CHECK(blind.status == 0);
  REQUIRE(std::regex_search(blind.err, match, sampled));
  CHECK(std::stod(match[2]) > 0.9 * (first + count * each) - start);
  CHECK(std::abs(std::stod(match[1]) / 100 * std::stod(match[2]) * 200 - burns(blind)) < 0.2 * expected + 20);
  CHECK_THAT(blind.err, Catch::Contains("doubtful: only ") &&
                            Catch::Contains("used by processes that ended before luaspy saw whether they run Lua"));
}

// Each exec drops a session while the CPU samplers look at its threads. LUASPY_EXECS: how many for each child; the long
// form, in a build with sanitizers, has 1,000.
TEST_CASE("children that execute another program again and again, at 5 kHz", "[family]") {
  const Folder folder;
  const std::string program = compile(folder, "exec_chain", source_version("5.4"));
  const char* const asked_for = std::getenv("LUASPY_EXECS");
  const std::string execs = asked_for != nullptr ? asked_for : "80";
  const std::string child = fmt::format("{} 10 {}", program, execs);
  for (const Words& options : {Words{}, Words{"--idle"}}) {
    const Finished recorded = luaspy(
        Words{"record", "-s", "-r", "5000", "--max-stopped", "100", "-f", "folded", "-o", "-"} + options +
        Words{"--", "sh", "-c", fmt::format("{0} & {0} & wait", child)});
    INFO(recorded.err);
    REQUIRE(recorded.status == 0);
    std::int64_t working = 0;
    for (const FoldedStack& stack : parse_folded(recorded.out)) {
      for (const std::string& frame : stack.frames) working += frame.starts_with("work ") ? stack.count : 0;
    }
    CHECK(working > 100);
  }
}

// The same path before and after: only what the kernel tells of the exec, or the program's mark, shows it.
TEST_CASE("a target that executes its own program again is another process from then on", "[family]") {
  const Folder folder;
  const std::string program = compile(folder, "exec_chain", source_version("5.4")),
                    confine = compile(folder, "confine");
  for (const bool blind : {false, true}) {
    const Words record = {"record", "-s", "-r", "200", "-f", "folded", "-o", "-", "--", program, "2500", "2"};
    const Finished recorded = blind ? run(Words{confine, "perf_event_open=EACCES", "--", luaspy_program} + record)
                                    : luaspy(record);
    INFO(recorded.err << recorded.out);
    REQUIRE(recorded.status == 0);
    std::map<std::string, std::int64_t> samples;  // by arguments
    for (const FoldedStack& stack : parse_folded(recorded.out)) {
      const std::string& process = stack.frames.front();
      samples[process.substr(process.find(program) + program.size())] += stack.count;
    }
    CHECK(samples.size() == 2);
    CHECK(samples[" 2500 2]"] > 100);
    CHECK(samples[" 2500 1]"] > 100);
  }
}

TEST_CASE("threads that live for some ms are sampled from their beginning", "[family]") {
  const Folder folder;
  const std::string program = compile(folder, "request_threads", source_version("5.4"));
  for (const std::string ms : {"6", "30"}) {
    const int count = 1800 / std::stoi(ms);
    const Finished recorded = luaspy(
        {"record", "-r", "200", "-f", "folded", "-o", "-", "--", program, ms, std::to_string(count)});
    CAPTURE(ms, recorded.err);
    CHECK(recorded.status == 0);
    double hot = 0, cold = 0;
    for (const FoldedStack& stack : parse_folded(recorded.out)) {
      for (const std::string& frame : stack.frames) {
        if (frame.starts_with("hot ")) hot += static_cast<double>(stack.count);
        if (frame.starts_with("cold ")) cold += static_cast<double>(stack.count);
      }
    }
    CHECK(is_sampled(recorded, hot + cold, 1.8 * 200));
    CHECK(std::abs(hot / (hot + cold) - 0.75) < 0.12);  // 0.52 if threads are found by listing them
  }
}

TEST_CASE("the workers of an nginx under load", "[family][all]") {
  const Folder folder;
  std::string configuration = read_file(host("nginx").back());
  const std::size_t at = configuration.find("master_process off;");
  REQUIRE(at != std::string::npos);
  configuration.replace(at, 19, "master_process on; worker_processes 2; user root;");
  const std::string file = folder.write("nginx.conf", configuration);
  Words command = {"/usr/bin/env", "-C", folder.path()};
  for (const std::string& each : host("nginx")) command.push_back(each == host("nginx").back() ? file : each);
  command.insert(command.end(), {"-p", folder.path()});
  Running nginx(command);
  const WithChildren ends_workers{nginx};
  nginx.read_until("READY");
  const std::string pid = std::to_string(nginx.pid());

  const Finished recorded = luaspy({"record", "-s", "-d", "2", "-f", "folded", "-o", "-", "--pid", pid});
  INFO(recorded.err);
  CHECK(recorded.status == 0);
  int workers = 0;
  for (const auto& [process, functions] : functions_by_process(recorded.out))
    workers += process.find("worker process") != std::string::npos && functions.contains("middle");
  CHECK(workers == 2);

  const nlohmann::json dumped = dump(nginx.pid(), {"-s"});
  CHECK(dumped.at("threads").at(0).at("frames").at(0).at("name") == "[rt_sigsuspend]");  // the master
  REQUIRE(dumped.at("subprocesses").size() == 2);
  for (const nlohmann::json& worker : dumped.at("subprocesses"))
    CHECK(worker.at("command").get<std::string>().find("worker process") != std::string::npos);
}

TEST_CASE("several looks tell a hang from work", "[family]") {
  const auto movement = [](const Running& running) {
    const nlohmann::json json = dump(running.pid(), {"--count", "3", "--interval", "0.2"});
    CHECK(json.at("later").size() == 2);
    REQUIRE(json.at("movements").size() == 1);
    return json.at("movements").at(0);
  };
  Words command = target(lua54).command;
  command.insert(command.end(), {workload("traceback.lua"), "plain"});
  Running waiting(command);
  waiting.read_until("READY");
  waiting.await("it sleeps", [&] { return state_of(waiting.pid()) == 'S'; });
  const nlohmann::json still = movement(waiting);
  CHECK(still.at("verdict") == "stands still");
  CHECK(still.at("inside").at(0).at("name") == "[read]");
  CHECK(still.at("lines").size() == 1);

  command.at(command.size() - 2) = workload("spin.lua");
  Running working(command);
  working.read_until("READY");
  const nlohmann::json works = movement(working);
  CHECK(works.at("verdict") == "works");
  CHECK(works.at("cpu").get<double>() + works.at("waited_for_cpu").get<double>() > 0.5);
  const auto inside = works.at("inside");
  CHECK(std::any_of(inside.begin(), inside.end(),
                    [](const nlohmann::json& frame) { return frame.at("name") == "rest"; }));
}

TEST_CASE("a luaspy that is stopped by Ctrl-Z keeps no thread of the target stopped", "[family]") {
  const Folder folder;
  Words command = target(lua54).command;
  command.insert(command.end(), {workload("spin.lua"), "plain"});
  Running working(command);
  working.read_until("READY");
  const std::string profile = folder.path("profile.folded");
  // In its own process group: Ctrl-Z does nothing in a group without a shell (POSIX, orphaned
  // process group).
  Running recording({"python3", "-c", "import os, sys; os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])",
                     luaspy_program, "record", "-r", "2000", "--max-stopped", "100", "--every", "0.1", "-o", profile,
                     "--pid", std::to_string(working.pid())});
  const auto catches_tstp = [&] {
    const std::string status = read_file(fmt::format("/proc/{}/status", recording.pid()));
    const std::size_t field = status.find("SigCgt:\t");
    return field != std::string::npos &&
           (std::stoull(status.substr(field + 8, 16), nullptr, 16) >> (SIGTSTP - 1) & 1) != 0;
  };
  for (int round = 0; round < 20; ++round) {
    recording.await("it catches SIGTSTP", catches_tstp);
    REQUIRE(::kill(recording.pid(), SIGTSTP) == 0);
    recording.await("it is stopped", [&] { return state_of(recording.pid()) == 'T'; });
    CHECK(state_of(working.pid()) == 'R');
    REQUIRE(::kill(recording.pid(), SIGCONT) == 0);
  }
  recording.await("it runs again", catches_tstp);
  recording.await("it has samples", [&] { return !read_file(profile).empty(); });
  REQUIRE(::kill(recording.pid(), SIGINT) == 0);
  CHECK(recording.wait() == 0);
  CHECK(!parse_folded(read_file(profile)).empty());
}

}  // namespace luaspy::live::family_test
