// What sleeping threads wait for: programs/waits.c has one for each way to wait.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <sstream>

#include "attach/live_memory.h"
#include "attach/waits/waiting.h"
#include "base/file_descriptor.h"
#include "support/harness.h"

namespace luaspy::live::live_waiting_test {
namespace {

// Looks until the text of the thread with this name matches: it may not have reached its wait yet.
class Looks {
 public:
  explicit Looks(Running& running) : running_(running), process_(Process::open(running.pid())), memory_(running.pid()) {
    REQUIRE(process_);
  }

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
      if (read_file(fmt::format("/proc/{}/task/{}/comm", running_.pid(), thread->tid())) == name + "\n")
        return thread->tid();
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
  CHECK(looks
            .await("recv",
                   fmt::format(R"(recvfrom\(fd \d+: tcp 127\.0\.0\.1:{} -> 127\.0\.0\.1:{}\))", told.at("local"), port))
            .file->kind == OpenFile::Kind::connection);
  const Wait epoll = looks.await(
      "epoll", fmt::format(R"(epoll_wait\(fd \d+: unix {}/epoll listening, eventfd, 2 connections; for ever\))", path));
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
  looks.await("wait_any", fmt::format(R"(wait4\(its child {} \(holder\) runs\))", holder));
  CHECK(looks.await("wait_one", fmt::format(R"(wait4\(its child {} \(holder\) runs\))", holder)).children ==
        std::vector<pid_t>{holder});
  looks.await("pause", R"(pause\(a signal\))");
  looks.await("cond", R"(futex\(wait at 0x[0-9a-f]+; (1 h 59 min|2 h).* left\))");
}

TEST_CASE("a file system that does not answer does not block dump", "[waiting]") {
  const Folder folder;
  const std::string program = compile(folder, "silent"), mount = folder.path("mount");
  REQUIRE(::mkdir(mount.c_str(), 0755) == 0);
  const bool mounts = run({"unshare", "-m", "mount", "-t", "tmpfs", "none", mount}).status == 0;
  if (!mounts || ::access("/dev/fuse", R_OK | W_OK) != 0) {
    INFO("only root may mount file systems, not in every container, and there has to be /dev/fuse: else it says so");
    CHECK(run({program, mount}).status != 0);
    return;
  }
  Running running({program, mount});
  running.read_until("READY");
  const Finished dumped = run({"timeout", "-s", "KILL", "60", luaspy_program, "dump", "--mode", "native", "--pid",
                               std::to_string(running.pid())});
  INFO(dumped.err << dumped.out);
  CHECK(dumped.status == 0);
  const std::size_t waits = dumped.out.find("waits in read(fd ");
  REQUIRE(waits != std::string::npos);
  const std::string line = dumped.out.substr(waits, dumped.out.find('\n', waits) - waits);
  CHECK(line.ends_with(mount + "/file)"));  // in a chroot, the path in the mount namespace
  running.close_input();
  running.wait();
}

TEST_CASE("who has the other end of a named pipe", "[waiting]") {
  const Folder folder;
  const std::string path = folder.path("named");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const FileDescriptor other(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // so that nobody waits for a writer
  REQUIRE(other);
  Running running({"sh", "-c", fmt::format("exec cat '{}'", path)});
  const auto dumped = [&] { return luaspy({"dump", "--mode", "native", "--pid", std::to_string(running.pid())}).out; };
  const std::string expected = fmt::format("named pipe {}, written by {} ({})", path, ::getpid(), own_name());
  running.await(expected, [&] { return dumped().find(expected) != std::string::npos; });
}

TEST_CASE("who holds the mutex that a thread waits for", "[waiting]") {
  const Folder folder;
  Running running(Words{compile(folder, "waits"), folder.path()});
  running.read_until("READY");
  Looks looks(running);
  const auto held_by = [&](const std::string& thread, const std::string& holder) {
    const Wait wait = looks.await(
        thread, R"(futex\(wait for the mutex at 0x[0-9a-f]+ held by thread \d+ ")" + holder + R"("\))");
    CHECK(wait.mutex_owner == looks.tid(holder));
    return std::pair(looks.tid(thread), wait.mutex_owner.value_or(0));
  };
  const std::vector<std::pair<pid_t, pid_t>> owners = {held_by("lock_a", "lock_b"), held_by("lock_b", "lock_a"),
                                                       held_by("own", "own"), held_by("robust", "waits"),
                                                       held_by("pi", "waits")};
  CHECK(looks.await("join", R"(futex\(wait for thread \d+ "lock_a" to end\))").joined_thread == looks.tid("lock_a"));
  CHECK(!looks.await("stdio", R"(futex\(wait at 0x[0-9a-f]+\))").mutex_owner);  // not a mutex of pthreads
  const std::vector<std::vector<pid_t>> rings = deadlocks(owners);
  REQUIRE(rings.size() == 2);
  CHECK(rings[0] ==
        std::vector{std::min(owners[0].first, owners[1].first), std::max(owners[0].first, owners[1].first)});
  CHECK(rings[1] == std::vector{owners[2].first});
}

TEST_CASE("a target that a signal has stopped", "[waiting]") {
  Running running(lua({"-e", "print 'READY' io.stdout:flush() while true do end"}));
  running.read_until("READY");
  CHECK(why_still(running.pid()).empty());
  const std::string pid = std::to_string(running.pid()),
                    text = "stopped by a signal (SIGSTOP; continue it with kill -CONT " + pid + ")";
  ::kill(running.pid(), SIGSTOP);
  running.await("it is stopped", [&] { return why_still(running.pid()) == text; });
  const nlohmann::json json = dump(running.pid());
  INFO(json.dump(2));
  REQUIRE(json.at("threads").size() == 1);
  const nlohmann::json& wait = json.at("threads")[0].at("wait");
  CHECK(wait.at("halted") == "stopped");
  CHECK(wait.at("text").get<std::string>().starts_with(text));
  CHECK(json.at("threads")[0].at("frames").dump().find("main chunk") != std::string::npos);
  const Finished dumped = luaspy({"dump", "--pid", pid});
  INFO(dumped.out << dumped.err);
  CHECK(dumped.out.find("(stopped") != std::string::npos);
  CHECK(dumped.out.find("    " + text) != std::string::npos);
  CHECK(dumped.out.find("waits in") == std::string::npos);
  const Finished top = luaspy({"top", "--batch", "--interval", "0.5", "--count", "1", "--pid", pid});
  INFO(top.out << top.err);
  CHECK(top.out.find("(" + text + ")") != std::string::npos);
  ::kill(running.pid(), SIGCONT);
  running.await("it goes on", [&] { return why_still(running.pid()).empty(); });
}

namespace {

// A cgroup, of version 1 or 2, with a setting in `file` that stops or slows down its processes;
// does nothing if cgroups do not exist or the tests may not create one. A process that is in it at
// the end is released and put back.
class Group {
 public:
  Group(const std::string& mount, const std::string& file, const std::string& held, const std::string& free, pid_t pid)
      : mount_(mount),
        path_(fmt::format("{}/luaspy-test-{}", mount, ::getpid())),
        file_(path_ + "/" + file),
        held_(held),
        free_(free),
        pid_(pid) {
    if (read_file(mount + "/cgroup.procs").empty() && ::access((mount + "/cgroup.procs").c_str(), W_OK) != 0) return;
    if (::mkdir(path_.c_str(), 0755) != 0) return;
    made_ = true;
    ready_ = ::access(file_.c_str(), W_OK) == 0 && write(path_ + "/cgroup.procs", std::to_string(pid));
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (!made_) return;
    let_go();
    write(mount_ + "/cgroup.procs", std::to_string(pid_));
    ::rmdir(path_.c_str());
  }
  bool ready() const { return ready_; }
  bool hold() { return write(file_, held_); }
  void let_go() { write(file_, free_); }

 private:
  static bool write(const std::string& path, const std::string& text) {
    std::ofstream out(path);
    return static_cast<bool>(out << text << std::flush);
  }
  std::string mount_, path_, file_, held_, free_;
  pid_t pid_;
  bool made_ = false, ready_ = false;
};

std::string v2_mount() {
  return ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
}

}  // namespace

TEST_CASE("a target whose cgroup is frozen", "[waiting]") {
  const bool v2 = GENERATE(false, true);
  const bool sleeps = GENERATE(false, true);
  Running running(lua({"-e", sleeps ? "print 'READY' io.stdout:flush() io.read()"
                                    : "print 'READY' io.stdout:flush() while true do end"}));
  running.read_until("READY");
  Group freezer(v2 ? v2_mount() : "/sys/fs/cgroup/freezer", v2 ? "cgroup.freeze" : "freezer.state", v2 ? "1" : "FROZEN",
                v2 ? "0" : "THAWED", running.pid());
  if (!freezer.ready()) {
    WARN("no cgroup of version " << (v2 ? 2 : 1)
                                 << " can be frozen here: what is said of such a target was not tried on one");
    return;
  }
  CHECK(why_still(running.pid()).empty());
  if (sleeps)
    running.await("it reads",
                  [&] { return read_file(fmt::format("/proc/{}/syscall", running.pid())).starts_with("0 0x0 "); });
  CHECK(freezer.hold());
  running.await("it is frozen", [&] { return why_still(running.pid()) == "frozen by its cgroup freezer"; });
  const Finished dumped = luaspy({"dump", "--pid", std::to_string(running.pid())});
  INFO(dumped.out << dumped.err);
  CHECK(dumped.status == 0);
  CHECK(dumped.out.find("(frozen") != std::string::npos);
  CHECK(dumped.out.find("    frozen by its cgroup freezer") != std::string::npos);
  CHECK((dumped.out.find("in read(fd 0") != std::string::npos) == sleeps);
  freezer.let_go();
  running.await("it goes on", [&] { return why_still(running.pid()).empty(); });
}

namespace {

constexpr const char* spin = "print 'READY' io.stdout:flush() while true do end";

// The state of the only thread in dump's JSON; checks that dump's text shows the same.
nlohmann::json cpu_wait_of(pid_t pid, const std::regex& expected) {
  const nlohmann::json json = dump(pid);
  UNSCOPED_INFO(json.dump(2));
  REQUIRE(json.at("threads").size() == 1);
  const nlohmann::json& thread = json.at("threads")[0];
  CHECK(thread.at("state") == "running");
  REQUIRE(thread.contains("cpu_wait"));
  const nlohmann::json& wait = thread.at("cpu_wait");
  CHECK(std::regex_search(wait.at("text").get<std::string>(), expected));
  CHECK(wait.at("on_cpu_s").get<double>() < 0.9 * wait.at("window_s").get<double>());
  CHECK(!wait.contains("waited_s"));
  CHECK(thread.at("frames").dump().find("main chunk") != std::string::npos);
  const Finished dumped = luaspy({"dump", "--pid", std::to_string(pid)});
  INFO(dumped.out << dumped.err);
  CHECK(dumped.status == 0);
  CHECK(std::regex_search(dumped.out, expected));
  return wait;
}

}  // namespace

TEST_CASE("a target that shares its CPU with others", "[waiting]") {
  cpu_set_t usable;
  REQUIRE(::sched_getaffinity(0, sizeof usable, &usable) == 0);
  int cpu = CPU_SETSIZE - 1;
  while (!CPU_ISSET(cpu, &usable)) --cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  Running target(lua({"-e", spin})), beside(lua({"-e", spin})), another(lua({"-e", spin}));
  for (Running* const each : {&target, &beside, &another}) {
    each->read_until("READY");
    REQUIRE(::sched_setaffinity(each->pid(), sizeof one, &one) == 0);
  }
  (void)cpu_wait_of(target.pid(), std::regex(R"(wants to run; had a CPU \d+ % of the last )"));
  // Who is in a hurry does not want to know.
  CHECK(!dump(target.pid(), {"--interval", "0"}).at("threads")[0].contains("cpu_wait"));
}

TEST_CASE("a target whose cgroup is throttled", "[waiting]") {
  const bool v2 = GENERATE(false, true);
  Running running(lua({"-e", spin}));
  running.read_until("READY");
  Group quota(v2 ? v2_mount() : "/sys/fs/cgroup/cpu", v2 ? "cpu.max" : "cpu.cfs_quota_us",
              v2 ? "20000 100000" : "20000", v2 ? "max" : "-1", running.pid());
  if (!quota.ready() || !quota.hold()) {
    WARN("no cgroup of version " << (v2 ? 2 : 1)
                                 << " can have a quota here: what is said of such a target was not tried on one");
    return;
  }
  const nlohmann::json wait = cpu_wait_of(
      running.pid(),
      std::regex(R"(wants to run; had a CPU \d+ % of the last .*; throttled by its cgroup for [0-9.]+ s)"));
  CHECK(wait.at("throttled_s").get<double>() > 0);
}

TEST_CASE("a target that sleeps does not wait for a CPU", "[waiting]") {
  Running running(lua({"-e", "print 'READY' io.stdout:flush() io.read()"}));
  running.read_until("READY");
  running.await("it reads",
                [&] { return read_file(fmt::format("/proc/{}/syscall", running.pid())).starts_with("0 0x0 "); });
  CHECK(!dump(running.pid()).at("threads")[0].contains("cpu_wait"));
}

}  // namespace luaspy::live::live_waiting_test
