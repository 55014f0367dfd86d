// What sleeping threads wait for: programs/waits.c has one for each way to wait.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <regex>
#include <sstream>

#include "attach/live_memory.h"
#include "attach/waiting.h"
#include "harness.h"

namespace luaspy::live {
namespace {

// Looks until the text of the thread of this name matches: it may still be on its way to where it waits.
class Looks {
 public:
  explicit Looks(Running& running) : running_(running), process_(Process::open(running.pid())), memory_(running.pid()) { REQUIRE(process_); }

  Wait await(const std::string& name, const std::string& pattern) {
    Wait wait;
    const std::regex expected(pattern);
    running_.await(name + ": " + pattern, [&] {
      Waits waits(*process_, memory_);
      for (const auto& thread : process_->threads()) {
        if (read_file(fmt::format("/proc/{}/task/{}/comm", running_.pid(), thread->tid())) != name + "\n") continue;
        const ThreadState state = thread->state();
        if (state.kind == ThreadState::Kind::sleeping) wait = waits.explain(*thread, state);
      }
      UNSCOPED_INFO(wait.text);
      return std::regex_match(wait.text, expected);
    });
    return wait;
  }
  pid_t tid(const std::string& name) {
    for (const auto& thread : process_->threads()) {
      if (read_file(fmt::format("/proc/{}/task/{}/comm", running_.pid(), thread->tid())) == name + "\n") return thread->tid();
    }
    return 0;
  }

 private:
  Running& running_;
  Result<Process> process_;
  LiveMemory memory_;
};

std::string own_name() {
  std::string name = read_file("/proc/self/comm");
  name.pop_back();
  return name;
}

}  // namespace

TEST_CASE("what each thread waits for", "[waiting]") {
  const Folder folder;
  const std::string path = folder.path();
  Running running(Words{compile(folder, "waits"), path});
  std::map<std::string, int> told;
  for (const std::string& line : running.read_until("READY")) {
    std::istringstream words(line);
    std::string key;
    words >> key, words >> told[key];
  }
  const int holder = told.at("holder"), port = told.at("port");
  Looks looks(running);
  looks.await("read", fmt::format(R"(read\(fd 0: pipe:\[\d+\], written by {} \({}\)\))", ::getpid(), own_name()));
  looks.await("accept", fmt::format(R"(accept\(fd \d+: tcp 127\.0\.0\.1:{} listening\))", port));
  CHECK(looks.await("recv", fmt::format(R"(recvfrom\(fd \d+: tcp 127\.0\.0\.1:{} -> 127\.0\.0\.1:{}\))", told.at("local"), port)).file->kind == OpenFile::Kind::connection);
  const Wait epoll = looks.await("epoll", fmt::format(R"(epoll_wait\(fd \d+: unix {}/epoll listening, eventfd, 2 connections; for ever\))", path));
  CHECK(epoll.watched.size() == 4);
  CHECK(epoll.system_call == "epoll_wait");
  CHECK(!epoll.timeout);
  CHECK(looks.await("poll", R"(poll\(fd \d+: pipe:\[\d+\]; at most 1 h\))").timeout == std::chrono::hours(1));
  looks.await("select", R"(p?select6?\(fd \d+: eventfd; at most 1 min 30 s\))");
  looks.await("flock", fmt::format(R"(flock\(fd \d+: {}/flock; lock held by {} \(holder\)\))", path, holder));
  looks.await("fcntl", fmt::format(R"(fcntl\(fd \d+: {}/fcntl; lock held by {} \(holder\)\))", path, holder));
  looks.await("connect", fmt::format(R"(connect\(fd \d+: unix socket; to {}/full\))", path));
  looks.await("terminal", R"(read\(fd \d+: terminal /dev/pts/\d+\))");
  looks.await("sleep", R"((clock_)?nanosleep\(1 h\))");
  looks.await("until", R"(clock_nanosleep\(1 h (29|30) min.* left\))");
  looks.await("wait_any", fmt::format(R"(wait4\(child {} \(holder\)\))", holder));
  CHECK(looks.await("wait_one", fmt::format(R"(wait4\(child {} \(holder\)\))", holder)).children == std::vector<pid_t>{holder});
  looks.await("pause", R"(pause\(a signal\))");
  looks.await("cond", R"(futex\(wait at 0x[0-9a-f]+; (1 h 59 min|2 h).* left\))");
}

TEST_CASE("who holds the mutex that a thread waits for", "[waiting]") {
  const Folder folder;
  Running running(Words{compile(folder, "waits"), folder.path()});
  running.read_until("READY");
  Looks looks(running);
  const auto held_by = [&](const std::string& thread, const std::string& holder) {
    const Wait wait = looks.await(thread, R"(futex\(wait for the mutex at 0x[0-9a-f]+ held by thread \d+ ")" + holder + R"("\))");
    CHECK(wait.mutex_owner == looks.tid(holder));
    return std::pair(looks.tid(thread), wait.mutex_owner.value_or(0));
  };
  const std::vector<std::pair<pid_t, pid_t>> owners = {held_by("lock_a", "lock_b"), held_by("lock_b", "lock_a"), held_by("own", "own"), held_by("robust", "waits"), held_by("pi", "waits")};
  CHECK(looks.await("join", R"(futex\(wait for thread \d+ "lock_a" to end\))").joined_thread == looks.tid("lock_a"));
  CHECK(!looks.await("stdio", R"(futex\(wait at 0x[0-9a-f]+\))").mutex_owner);   // not a mutex of pthreads
  const std::vector<std::vector<pid_t>> rings = deadlocks(owners);
  REQUIRE(rings.size() == 2);
  CHECK(rings[0] == std::vector{std::min(owners[0].first, owners[1].first), std::max(owners[0].first, owners[1].first)});
  CHECK(rings[1] == std::vector{owners[2].first});
}

}  // namespace luaspy::live
