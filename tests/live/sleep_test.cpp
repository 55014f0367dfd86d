// Sleeping threads are read without a stop: stopping one would end its epoll_wait, recv with a
// timeout or sigtimedwait with EINTR, which programs/sleeper.c counts.

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "support/harness.h"

namespace luaspy::live::sleep_test {
namespace {

const std::string none_interrupted = "epoll_wait 0 recv 0 sigtimedwait 0\n";

// Tells the sleeper to end, and returns its counts.
std::string count(Running& sleeper) {
  sleeper.close_input();
  CHECK(sleeper.wait() == 0);
  return sleeper.rest();
}

void record(const Running& sleeper, const Words& more) {
  Words command = {"record", "-r", "100", "-d",        "10",    "-f",
                   "folded", "-o", "-",   "--threads", "--pid", std::to_string(sleeper.pid())};
  command.insert(command.end(), more.begin(), more.end());
  const Finished recorded = luaspy(command);
  INFO(recorded.err << recorded.out);
  const bool idle = std::ranges::find(more, "--idle") != more.end();
  if (!idle) {
    CHECK(recorded.status == 11);  // nothing ran
    CHECK(recorded.out.empty());
    CHECK(recorded.err.find("--idle") != std::string::npos);
    return;
  }
  REQUIRE(recorded.status == 0);
  std::map<std::string, std::int64_t> ends;  // samples by innermost frame
  for (const FoldedStack& stack : parse_folded(recorded.out)) ends[stack.frames.back()] += stack.count;
  for (const char* const call : {"[epoll_wait]", "[recvfrom]", "[rt_sigtimedwait]"}) {
    INFO(call);
    CHECK(ends[call] >= 100);  // of 1000, as the machine may be busy
  }
}

}  // namespace

TEST_CASE("a recording interrupts no sleeping thread", "[sleep]") {
  const Folder folder;
  Running sleeper({compile(folder, "sleeper")});
  sleeper.read_until("READY");
  record(sleeper, {"--idle", "--mode", "native"});
  record(sleeper, {"--mode", "native"});
  CHECK(count(sleeper) == none_interrupted);
}

TEST_CASE("a recording interrupts no thread that sleeps below Lua", "[sleep][luas]") {
  const Folder folder;
  Running sleeper(
      {compile(folder, "sleeper", source_version(GENERATE_COPY(from_range(prepared({"5.4", "2.1.20220320-gc64"})))))});
  sleeper.read_until("READY");
  record(sleeper, {"--idle"});
  record(sleeper, {});
  CHECK(count(sleeper) == none_interrupted);
}

TEST_CASE("the sleeper counts interruptions", "[sleep]") {
  const Folder folder;
  Running sleeper({compile(folder, "sleeper")});
  sleeper.read_until("READY");
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(sleeper.pid()) + "/task")) {
    const pid_t tid = std::stoi(task.path().filename());
    REQUIRE(::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0);
    REQUIRE(::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0);
    REQUIRE(::waitpid(tid, nullptr, __WALL) == tid);
    REQUIRE(::ptrace(PTRACE_DETACH, tid, nullptr, nullptr) == 0);
  }
  CHECK(count(sleeper) == "epoll_wait 1 recv 1 sigtimedwait 1\n");
}

TEST_CASE("a sleeping thread shows what it waits in, and its Lua stack", "[sleep][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(
      prepared({"5.1", "5.2", "5.3", "5.4", "5.5", "2.1.20220320-gc64", "2.1.newest-gc32", "2.1.tarantool2.6-gc64"}))));
  const Folder folder;
  Running sleeper({compile(folder, "sleeper", version)});
  sleeper.read_until("READY");
  const nlohmann::json json = dump(sleeper.pid());
  INFO(version << "\n" << json.dump(2));
  REQUIRE(json.at("threads").size() == 4);
  int found = 0;
  for (const nlohmann::json& thread : json.at("threads")) {
    CHECK(thread.at("state") == "sleeping");
    CHECK(thread.at("native_complete") == true);
    CHECK(thread.at("stopped_ns") == 0);
    if (thread.at("frames").at(0).at("name") != "[epoll_wait]") continue;
    ++found;
    std::vector<std::string> names;
    for (const nlohmann::json& frame : thread.at("frames")) {
      if (frame.at("kind") != "native" && frame.at("kind") != "kernel") names.push_back(frame.at("name"));
    }
    REQUIRE(names.size() == 5);
    CHECK((names[1] == "wait_from_lua" || names[1] == "wait"));  // the symbol, or what Lua called it
    names.erase(names.begin() + 1);
    CHECK(names == std::vector<std::string>{"[epoll_wait]", "serve", "main_loop", "main chunk"});
  }
  CHECK(found == 1);
  CHECK(count(sleeper) == none_interrupted);
}

}  // namespace luaspy::live::sleep_test
