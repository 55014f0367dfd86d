// luaspy ps, --pid auto and --name, in their own PID namespace: its only processes are those that a
// test starts.

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::ps_test {
namespace {

std::string quoted(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("'{}' ", word);  // no word has a quote
  return text;
}

// A shell that is the first process of its namespace; processes that it started end with it.
class Namespace {
 public:
  Namespace() : shell_(command(folder_)) { shell_.read_until("READY"); }
  // Starts a program that says READY; returns its pid.
  int start(const Words& words) {
    shell_.send(quoted(words) +
                "<&3 >\"$1/said\" & echo $!; until grep -qs READY \"$1/said\"; do read -t 0.01 <&3; done; rm "
                "\"$1/said\"; echo END\n");
    return std::stoi(shell_.read_until("END").at(0));
  }
  int start_lua(const std::string& name, const std::string& code = "io.read()") {
    Words words = target(name).command;
    words.insert(words.end(), {"-e", "io.write(\"READY\\n\") io.flush() " + code});
    return start(words);
  }
  Finished luaspy(const Words& arguments, const std::string& before = {}) {
    Words words = {luaspy_program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    shell_.send(fmt::format("{} {} 2>{} </dev/null; s=$?; echo; echo status; echo $s; echo END\n", before,
                            quoted(words), folder_.path("errors")));
    Finished finished;
    const std::vector<std::string> lines = shell_.read_until("END");
    REQUIRE(lines.size() >= 3);
    finished.status = std::stoi(lines.back());
    for (std::size_t i = 0; i + 3 < lines.size(); ++i) finished.out += lines[i] + "\n";
    finished.err = read_file(folder_.path("errors"));
    UNSCOPED_INFO(finished.out << finished.err);
    return finished;
  }
  void kill(int pid) {
    shell_.send(fmt::format("kill -9 {0}; wait {0} 2>/dev/null; echo END\n", pid));
    shell_.read_until("END");
  }
  const Folder& folder() const { return folder_; }

 private:
  static Words command(const Folder& folder) {
    const std::string
        script = "mkfifo \"$1/never\"; exec 3<>\"$1/never\"; echo READY; while read -r line; do eval \"$line\"; done";
    Words words = {"unshare",   "-p", "-f",   "--mount-proc", "--kill-child",
                   "/bin/bash", "-c", script, "bash",         folder.path()};
    if (::geteuid() != 0) words.insert(words.begin() + 1, "-r");
    return words;
  }
  Folder folder_;
  Running shell_;
};

nlohmann::json of_pid(const nlohmann::json& list, int pid) {
  for (const nlohmann::json& process : list.at("processes")) {
    if (process.at("pid") == pid) return process;
  }
  FAIL("no process " << pid << " in " << list.dump(2));
  throw 0;
}

}  // namespace

// Its bound is CPU time, of which it gets a tenth here.
TEST_CASE("ps counts states on a busy machine, too", "[ps]") {
  Namespace processes;
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  const std::string on_cpu = fmt::format("taskset -c {}", cpu);
  (void)processes.start({"taskset", "-c", std::to_string(cpu), "/bin/sh", "-c", "echo READY; while :; do :; done"});
  const int pid = processes.start(
      {compile(processes.folder(), "c_heap", source_version("5.4")), "240", workload("objects.lua"), "wait"});
  const Finished finished = processes.luaspy({"ps", "--json", "--states"}, on_cpu + " nice -n 10");
  REQUIRE(finished.status == 0);
  const nlohmann::json process = of_pid(nlohmann::json::parse(finished.out), pid);
  CHECK(process.at("states") == 1);
  CHECK(process.at("states_complete") == true);
}

TEST_CASE("ps lists the processes that run Lua", "[ps]") {
  Namespace processes;
  CHECK(processes.luaspy({"ps"}).err == "No process runs Lua.\n");
  const std::vector<std::pair<std::string, std::string>> kinds = {{"debian-lua5.1-bookworm", "5.1.5"},
                                                                  {"debian-lua5.4-bookworm", "5.4.4"},
                                                                  {"debian-luajit-bookworm", "LuaJIT 2.1.0-beta3"}};
  std::vector<int> pids;
  for (const auto& [name, version] : kinds) pids.push_back(processes.start_lua(name));
  const int busy = processes.start_lua("debian-lua5.3-bookworm", "while true do end");
  Words redis = {"/bin/sh", "-c", "echo READY; exec \"$@\" >/dev/null", "sh"};
  const Words server = host("redis");
  redis.insert(redis.end(), server.begin(), server.end());
  redis.insert(redis.end(), {"--port", "0", "--unixsocket", processes.folder().path("socket"), "--save", "",
                             "--logfile", processes.folder().path("log")});
  const int redis_pid = processes.start(redis);
  Finished finished;
  nlohmann::json list;
  // Redis starts as a shell, then has one thread.
  const auto redis_is_up = [&] {
    for (const nlohmann::json& process : list.at("processes")) {
      if (process.at("pid") == redis_pid) return process.at("threads") >= 4;
    }
    return false;
  };
  do {
    finished = processes.luaspy({"ps", "--json", "--states"});
    REQUIRE(finished.status == 0);
    list = nlohmann::json::parse(finished.out);
  } while (!redis_is_up());
  CHECK(list.at("version") == 1);
  CHECK(list.at("unseen").empty());
  REQUIRE(list.at("processes").size() == 5);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const nlohmann::json process = of_pid(list, pids[i]);
    INFO(process.dump(2));
    REQUIRE(process.at("lua").size() == 1);
    CHECK(process.at("lua")[0] ==
          nlohmann::json({{"version", kinds[i].second}, {"file", target(kinds[i].first).core}, {"certain", true}}));
    CHECK(process.at("user") == "root");
    CHECK(process.at("uid") == 0);
    CHECK(process.at("threads") == 1);
    CHECK(process.at("bits") == 64);
    CHECK(process.at("states") == 1);
    CHECK(process.at("states_complete") == true);
    CHECK(process.at("read_as").size() == 1);
    CHECK(process.at("cpu_percent") == 0.0);  // it sleeps
    CHECK(process.at("command").get<std::string>().find("io.read()") != std::string::npos);
    CHECK(!process.contains("refusal"));
  }
  CHECK(of_pid(list, pids[1]).at("read_as")[0] == "Lua 5.4.3-5.4.9");
  CHECK(list.at("processes")[0].at("pid") == busy);
  CHECK(list.at("processes")[0].at("cpu_percent") > 2);  // the machine may be busy
  const nlohmann::json server_entry = of_pid(list, redis_pid);
  CHECK(server_entry.at("lua")[0].at("version") == "5.1.5");
  CHECK(server_entry.at("threads") >= 4);

  finished = processes.luaspy({"ps"});
  CHECK(std::regex_search(finished.out, std::regex(R"(^ *PID  USER +CPU %  THREADS  LUA +FOUND IN +COMMAND\n)")));
  CHECK(std::regex_search(
      finished.out,
      std::regex(fmt::format(R"(\n *{}  root +\d+\.\d +1  LuaJIT 2\.1\.0-beta3  luajit .*io\.read\(\)\n)", pids[2]))));
  // At a terminal, its width is used.
  const Finished narrow = processes.luaspy(
      {}, fmt::format("script -qec 'stty cols 90; {} ps' /dev/null; :", luaspy_program));
  std::istringstream lines(narrow.out);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  CHECK(longest >= 88);
  CHECK(longest <= 91);  // with the carriage return
}

TEST_CASE("--pid auto and --name", "[ps]") {
  Namespace processes;
  Finished finished = processes.luaspy({"dump", "--pid", "auto"});
  CHECK(finished.status == 5);
  CHECK(finished.err.starts_with("luaspy: --pid auto: no process runs Lua."));
  finished = processes.luaspy({"dump", "--name", "lua5.4"});
  CHECK(finished.status == 3);

  const int one = processes.start_lua("debian-lua5.4-bookworm", "local marked_word = io.read()");
  finished = processes.luaspy({"dump", "--json", "--pid", "auto"});
  CHECK(finished.status == 0);
  CHECK(nlohmann::json::parse(finished.out).at("pid") == one);
  finished = processes.luaspy({"record", "-d", "0.2", "--idle", "-f", "folded", "-o", "-", "--pid", "auto"});
  CHECK(finished.status == 0);
  CHECK(finished.out.find("read") != std::string::npos);

  const int two = processes.start_lua("debian-lua5.4-bookworm");
  const int three = processes.start_lua("debian-lua5.1-bookworm");
  finished = processes.luaspy({"dump", "--pid", "auto"});
  CHECK(finished.status == 2);
  CHECK(finished.out.empty());
  CHECK(finished.err.starts_with("luaspy: --pid auto: 3 processes run Lua; say which one with --pid:\n"));
  for (const int pid : {one, two, three})
    CHECK(std::regex_search(finished.err, std::regex(fmt::format(R"(\n *{}  root)", pid))));

  const auto chosen = [&](const std::string& name) -> int {
    finished = processes.luaspy({"dump", "--json", "--name", name});
    return finished.status == 0 ? nlohmann::json::parse(finished.out).at("pid").get<int>() : -finished.status;
  };
  CHECK(chosen("lua5.1") == three);
  CHECK(chosen("marked_word") == one);
  CHECK(chosen("no-such-name") == -3);
  CHECK(chosen("lua5.4") == -2);
  CHECK(finished.err.starts_with("luaspy: --name lua5.4: 2 processes with Lua match; say which one with --pid:\n"));
  for (const int pid : {one, two})
    CHECK(std::regex_search(finished.err, std::regex(fmt::format(R"(\n *{}  root)", pid))));
  CHECK(finished.err.find("lua5.1") == std::string::npos);
  CHECK(chosen("bash") == -5);  // one process, without Lua
  processes.kill(one);
  CHECK(chosen("lua5.4") == two);

  for (const Words& wrong : {Words{"dump", "--pid", "automatic"},
                             {"dump", "--pid", "-1"},
                             {"dump", "--pid", "1.5"},
                             {"dump", "--pid", "99999999999"},
                             {"dump", "--pid", "1", "--name", "x"},
                             {"record", "--name", "x", "--", "true"}}) {
    CHECK(processes.luaspy(wrong).status == 2);
  }
}

TEST_CASE("with -s, what a match has started is no second match; without, the message says what to type", "[ps]") {
  Namespace processes;
  const Words lua = target("debian-lua5.4-bookworm").command;
  const std::string child = processes.folder().path("child.lua");
  std::ofstream(child) << "io.write('READY\\n') io.flush() while true do end";
  Words words = lua;  // none of which has a blank
  words.insert(words.end(),
               {"-e", fmt::format("p = io.popen([[{} {}]], [[w]]) io.read()", fmt::join(lua, " "), child)});
  const int parent = processes.start(words);
  for (const std::string name : {"lua5.4", "auto"}) {
    const Words choice = name == "auto" ? Words{"--pid", "auto"} : Words{"--name", name};
    words = {"dump", "--json", "-s"};
    words.insert(words.end(), choice.begin(), choice.end());
    const Finished both = processes.luaspy(words);
    REQUIRE(both.status == 0);
    CHECK(both.out.find(fmt::format("\"pid\": {}", parent)) != std::string::npos);
    words.erase(words.begin() + 2);
    const Finished one = processes.luaspy(words);
    CHECK(one.status == 2);
    std::smatch match;
    REQUIRE(std::regex_search(
        one.err, match,
        std::regex(
            R"(luaspy: --\S+ \S+: 2 processes (with Lua match|run Lua), and (\d+) has started the others: -s looks at all of them\. Or say which one with --pid, as --pid (\d+) for the busiest:\n)")));
    CHECK(std::stoi(match[2]) == parent);
    CHECK(processes.luaspy({"dump", "--json", "--pid", match[3]}).status == 0);
    CHECK(std::stoi(match[3]) != parent);
    words[0] = "doctor", words.erase(words.begin() + 1);  // which looks at one process
    const Finished without = processes.luaspy(words);
    CHECK(without.status == 2);
    CHECK(without.err.find("-s looks") == std::string::npos);
  }
  const int other = processes.start_lua("debian-lua5.4-bookworm");
  CHECK(processes.luaspy({"dump", "-s", "--name", "lua5.4"}).status == 2);
  CHECK(other != parent);
}

TEST_CASE("what ps may not see, it counts, with the reason", "[ps]") {
  Words command = {luaspy_program, "ps"};
  if (::geteuid() == 0)
    command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  Running running(target("debian-lua5.4-bookworm").command);
  Finished finished = run(command);
  INFO(finished.out << finished.err);
  CHECK(finished.status == 0);
  CHECK(std::regex_search(
      finished.err,
      std::regex(
          R"((^|\n)\d+ process(es| \(\d+\)) could not be looked at: only root may look at other users' processes \(sudo luaspy ps\)\n)")));
  command.push_back("--json");
  finished = run(command);
  const nlohmann::json list = nlohmann::json::parse(finished.out);
  CHECK(finished.err.empty());
  REQUIRE(!list.at("unseen").empty());
  const auto pids = list.at("unseen")[0].at("pids").get<std::vector<int>>();
  CHECK(std::ranges::find(pids, 1) != pids.end());
  CHECK((std::ranges::find(pids, running.pid()) != pids.end()) == (::geteuid() == 0));
}

TEST_CASE("ps finds a program that runs Lua among all processes", "[ps][smoke]") {
  Running running(lua({"-e", "print('READY') io.flush() io.read()"}));
  running.read_until("READY");
  const Finished listed = luaspy({"ps", "--json"});
  REQUIRE(listed.status == 0);
  const nlohmann::json processes = nlohmann::json::parse(listed.out).at("processes");
  const auto found = std::ranges::find_if(processes, [&](const auto& each) { return each.at("pid") == running.pid(); });
  REQUIRE(found != processes.end());
  CHECK(found->at("lua").at(0).at("version").get<std::string>().starts_with("5.4"));
}

}  // namespace luaspy::live::ps_test
