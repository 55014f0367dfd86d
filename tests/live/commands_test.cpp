// The command line as a user sees it: exit codes and their messages, signals, output files, and the
// treatment of the target and of a launched command.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "attach/process.h"
#include "support/harness.h"

namespace luaspy::live::commands_test {
namespace {

std::string pid_of(const Running& running) { return std::to_string(running.pid()); }

void check(const Finished& finished, int status, const std::string& pattern) {
  INFO("status " << finished.status << "\n" << finished.err);
  CHECK(finished.status == status);
  INFO("should match: " << pattern);
  CHECK(std::regex_search(finished.err, std::regex(pattern)));
  CHECK(finished.err.size() < 4000);
}

// Checks that record and dump refuse in the same way.
void check_both(const std::string& pid, int status, const std::string& pattern) {
  const Folder folder;
  for (const Words& command :
       {Words{"dump", "--pid", pid},
        Words{"record", "-d", "1", "-o", folder.path("profile.speedscope.json"), "--pid", pid}}) {
    INFO(command[0] << " --pid " << pid);
    const Finished finished = luaspy(command);
    check(finished, status, pattern);
    CHECK(finished.out.empty());
    CHECK(finished.err.starts_with("luaspy: "));
  }
}

// A process that the test forked.
class Forked {
 public:
  explicit Forked(const std::function<void(int say, int hear)>& body) {
    std::array<int, 2> said{}, heard{};
    REQUIRE(::pipe2(said.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(heard.data(), O_CLOEXEC) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(heard[1]);
      body(said[1], heard[0]);
      ::_exit(0);
    }
    ::close(said[1]);
    ::close(heard[0]);
    listen_ = said[0], speak_ = heard[1];
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked() {
    ::close(listen_);
    ::close(speak_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // Reads a byte from it; 0 if it has closed its end.
  char hear() const {
    char byte = 0;
    return ::read(listen_, &byte, 1) == 1 ? byte : '\0';
  }

 private:
  pid_t pid_ = -1;
  int listen_ = -1, speak_ = -1;
};

// Kills a process that was started by a process of the test.
struct Killer {
  pid_t pid = 0;
  ~Killer() {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
};

std::string status_field(pid_t pid, const std::string& name) {
  std::istringstream status(read_file(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream words(line.substr(name.size() + 1));
    std::string word;
    words >> word;
    return word;
  }
  return {};
}

bool catches(pid_t pid, int signal) {
  const std::string mask = status_field(pid, "SigCgt");
  return !mask.empty() && (std::stoull(mask, nullptr, 16) >> (signal - 1) & 1) != 0;
}

// How often a process was scheduled: luaspy is scheduled at least once per tick.
long long runs(pid_t pid) {
  std::istringstream fields(read_file(fmt::format("/proc/{}/schedstat", pid)));
  long long run = 0, waited = 0, count = 0;
  fields >> run >> waited >> count;
  return count;
}

// Waits until this luaspy samples.
void await_recording(Running& luaspy) {
  luaspy.await("luaspy watches signals",
               [&] { return catches(luaspy.pid(), SIGINT) && catches(luaspy.pid(), SIGALRM); });
  const long long before = runs(luaspy.pid());
  luaspy.await("luaspy has ticked", [&] { return runs(luaspy.pid()) >= before + 100; });
}

// The target has executed for 100 ms more, of which luaspy can have samples.
void await_work(Running& luaspy, pid_t target) {
  const Thread thread(target, target);
  const std::int64_t before = thread.times().on_cpu;
  luaspy.await("the target has executed", [&] { return thread.times().on_cpu >= before + 100'000'000; });
}

// Returns how many ms of samples there are.
double check_speedscope(const std::string& text) {
  INFO(text.substr(0, 1000));
  const nlohmann::json json = nlohmann::json::parse(text);
  double weight = 0;
  for (const nlohmann::json& profile : json.at("profiles")) {
    CHECK(profile.at("samples").size() == profile.at("weights").size());
    for (const nlohmann::json& of : profile.at("weights")) weight += of.get<double>() / 1e6;
  }
  return weight;
}

}  // namespace

TEST_CASE("a number alone is a process", "[commands]") {
  const std::string nobody = "2147483000";
  check(luaspy({"dump", nobody}), 3, "no process " + nobody);
  check(luaspy({"dump", "--count", "3", nobody}), 3, "no process " + nobody);
  check(luaspy({"record", "-d", "1", nobody}), 3, "no process " + nobody);
  check(luaspy({"top", "--batch", nobody}), 3, "no process " + nobody);
  check(luaspy({"record", "-sd", "1", "--pid", nobody}), 3, "no process " + nobody);
  check(luaspy({"record", "-sd", "1", nobody}), 3, "no process " + nobody);
  const Finished help = luaspy({"help", "top"}), same = luaspy({"top", "--help"});
  CHECK(help.status == 0);
  CHECK(help.out == same.out);
}

TEST_CASE("a script is not a program", "[commands]") {
  const Folder folder;
  const std::string script = folder.path("quick.lua");
  std::ofstream(script) << "print(1)\n";
  check(luaspy({"record", script}), 126, "It is a script. Name its interpreter before it: -- lua5.4 .*quick.lua\n$");
}

TEST_CASE("help and version fit a screen", "[commands]") {
  for (const Words& words : {Words{"-h"}, Words{"--help"}, Words{"record", "-h"}, Words{"top", "-h"},
                             Words{"dump", "--help"}, Words{"--version"}}) {
    const Finished finished = luaspy(words);
    INFO(words.front() << "\n" << finished.out);
    CHECK(finished.status == 0);
    CHECK(finished.err.empty());
    std::istringstream lines(finished.out);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      INFO(line);
      CHECK(line.size() <= 100);
    }
    CHECK(count >= 1);
    CHECK(count <= (words.front() == "--version" ? 8 : 50));
    CHECK(std::regex_search(
        finished.out, std::regex(words.front() == "--version" ? "^luaspy [0-9]+\\.[0-9]+"
                                 : words.front() == "top"     ? "luaspy top --pid "
                                 : words.front() == "dump"    ? "luaspy dump --pid "
                                 : words.front() == "record"  ? "luaspy record --pid [\\s\\S]*luaspy report "
                                                              : "luaspy record --pid [\\s\\S]*luaspy dump --pid")));
  }
}

TEST_CASE("help shows what is typed", "[commands]") {
  const std::array<std::pair<const char*, const char*>, 5> usages = {
      {{"record", "[options] [-- COMMAND [ARGUMENT...]]\n"},
       {"report", "[options] [FILE...]\n"},
       {"heap", "[options] [FILE...]\n"},
       {"ps", "[options]\n"},
       {"completion", "[options] bash|zsh|fish\n"}}};
  for (const auto& [command, usage] : usages) {
    const Finished help = luaspy({command, "--help"});
    INFO(help.out);
    CHECK(help.out.find(fmt::format("\nUsage: luaspy {} {}", command, usage)) != std::string::npos);
  }
  CHECK(luaspy({"--help"}).out.find("\nUsage: luaspy COMMAND [options]\n") != std::string::npos);
}

TEST_CASE("a pattern that is no regular expression is a text, everywhere", "[commands]") {
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  const Folder folder;
  const std::string raw = folder.path("a.luaspy");
  const Finished recorded = luaspy(
      {"record", "-d", "0.5", "--only", "spin.lua:(", "-o", raw, "--pid", pid_of(running)});
  check(recorded, 11, "--only and --ignore leave none");  // no frame has this text
  check(luaspy({"record", "-d", "0.5", "--only", "(", "-o", raw, "--pid", pid_of(running)}), 0, "written");
  CHECK(luaspy({"report", raw, "--function", "("}).status == 0);
  CHECK(luaspy({"report", raw, "--only", "(", "-f", "folded", "-o", "-"}).out ==
        luaspy({"report", raw, "-f", "folded", "-o", "-"}).out);
}

TEST_CASE("no such process", "[commands][smoke]") {
  // A pid that was just in use and no longer is: a pid is only reused after all others.
  pid_t gone = 0;
  {
    const Forked forked([](int, int) {});
    gone = forked.pid();
  }
  check_both(std::to_string(gone), 3, fmt::format("no process {}", gone));
  check_both("2147483000", 3, "no process 2147483000");
}

TEST_CASE("a zombie", "[commands]") {
  const Forked forked([](int, int) {});
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(forked.pid()), &info, WEXITED | WNOWAIT) == 0);
  check_both(std::to_string(forked.pid()), 3, fmt::format("{} is a zombie.*parent {}", forked.pid(), ::getpid()));
}

TEST_CASE("a kernel thread", "[commands]") {
  // proc(5): field 9 of stat, counted from 3 after the name, holds PF_KTHREAD (0x00200000).
  pid_t kernel_thread = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_file(entry.path() / "stat");
    std::istringstream rest(stat.substr(std::min(stat.rfind(')'), stat.size() - 1) + 1));
    std::string field;
    for (int i = 3; i <= 9; ++i) rest >> field;
    if (rest && (std::stoull(field) & 0x00200000) != 0) kernel_thread = std::stoi(name);
  }
  if (kernel_thread == 0) {
    // In a separate pid namespace no kernel thread has a pid, so pid 2 is not one either.
    INFO("no kernel thread is visible here, so pid 2 must not be taken for one");
    const Finished finished = luaspy({"dump", "--pid", "2"});
    CHECK(finished.err.find("kernel thread") == std::string::npos);
    CHECK(finished.status != 0);
    return;
  }
  check_both(std::to_string(kernel_thread), 7, fmt::format("{} is a kernel thread", kernel_thread));
}

TEST_CASE("a process without Lua", "[commands]") {
  Running cat({"cat"});
  cat.send("READY\n");
  cat.read_until("READY");
  check_both(pid_of(cat), 5, "No Lua in process [0-9]+ \\(cat\\)[\\s\\S]*/cat\\n[\\s\\S]*libc");
}

TEST_CASE("a process with Luau", "[commands]") {
  for (const Words& options : {Words{}, Words{"-DWITHOUT_IDENTS"}}) {
    const Folder folder;
    Running program({compile(folder, "luau", {}, options)});
    program.read_until("READY");
    const std::string pid = pid_of(program);
    check_both(pid, 7, fmt::format("Process {} runs Luau \\(.*/luau\\), which luaspy does not support", pid));
    const Finished heap = luaspy({"heap", "--pid", pid}), listed = luaspy({"ps"}),
                   report = luaspy({"doctor", "--pid", pid});
    CHECK(heap.status == 7);
    CHECK(heap.err.find("runs Luau") != std::string::npos);
    CHECK(std::regex_search(listed.out, std::regex(fmt::format("\\n *{} .* Luau .*luau", pid))));
    CHECK(report.out.find("Luau in ") != std::string::npos);
    CHECK(report.out.find("Lua 5.1.4 in ") == std::string::npos);
  }
}

TEST_CASE("a wrapper of a process with Lua", "[commands]") {
  Running shell(Words{"/bin/sh", "-c", "\"$@\" & wait", "sh"} + lua({workload("spin.lua"), "plain"}));
  shell.read_until("READY");
  std::string first;
  std::istringstream(read_file(fmt::format("/proc/{0}/task/{0}/children", shell.pid()))) >> first;
  REQUIRE(!first.empty());
  const Killer killer{std::stoi(first)};
  check_both(pid_of(shell), 5,
             fmt::format("No Lua in process {} [\\s\\S]*child {} runs Lua 5.4[\\s\\S]*spin.lua", shell.pid(), first));
}

TEST_CASE("an already traced process", "[commands]") {
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  const pid_t tracee = running.pid();
  const Forked tracer([&](int say, int hear) {
    const bool traced = ::ptrace(PTRACE_SEIZE, tracee, nullptr, nullptr) == 0;
    char byte = traced ? 't' : 'f';
    (void)!::write(say, &byte, 1);
    (void)!::read(hear, &byte, 1);
  });
  REQUIRE(tracer.hear() == 't');
  check_both(pid_of(running), 9, fmt::format("{} is already traced by process {} \\(live", tracee, tracer.pid()));
}

// Machine code, so that no 32-bit toolchain is needed: write(1, "READY\n", 6), then pause()
// forever.
TEST_CASE("a 32-bit process", "[commands]") {
  const std::string code(
      "\xb8\x04\x00\x00\x00\xbb\x01\x00\x00\x00\xb9\x7c\x80\x04\x08\xba\x06\x00\x00\x00\xcd\x80"  // mov eax,4; ebx,1;
                                                                                                  // ecx,0x0804807c;
                                                                                                  // edx,6; int 0x80
      "\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7",  // mov eax,29; int 0x80; jmp to the mov
      31);
  std::string file(
      "\x7f"
      "ELF\x01\x01\x01",
      7);
  const auto half = [&](unsigned value) { file += static_cast<char>(value), file += static_cast<char>(value >> 8); };
  const auto word = [&](unsigned value) { half(value & 0xffff), half(value >> 16); };
  const unsigned base = 0x08048000, text = 52 + 32, message = text + 40, size = message + 6;  // message: 0x7c in the
                                                                                              // file
  file.resize(16);
  half(2), half(3), word(1), word(base + text), word(52), word(0), word(0), half(52), half(32), half(1), half(40),
      half(0), half(0);                                                                     // ET_EXEC, EM_386
  word(1), word(0), word(base), word(base), word(size), word(size), word(5), word(0x1000);  // PT_LOAD, r-x
  file += code;
  file.resize(message);
  file += "READY\n";
  REQUIRE(message == 0x7c);
  const Folder folder;
  Running running({folder.write("program", file, 0755)});
  running.read_until("READY");  // fails here on a kernel without IA32 emulation
  check_both(pid_of(running), 7, fmt::format("{} is a 32-bit program", running.pid()));
}

TEST_CASE("no permission", "[commands]") {
  const Folder folder;
  const bool root = ::geteuid() == 0;
  // As root: luaspy runs as user nobody, from a folder that this user can read.
  std::filesystem::copy_file(luaspy_program, folder.path("luaspy"));
  REQUIRE(::chmod(folder.path("luaspy").c_str(), 0755) == 0);
  const Words as_other = root ? Words{"setpriv",        "--reuid=65534",   "--regid=65534",
                                      "--clear-groups", "--inh-caps=-all", "--no-new-privs"}
                              : Words{"env"};
  const std::string user = std::to_string(root ? 65534 : ::geteuid());
  SECTION("another user's process") {
    pid_t other = 0;
    Running running(lua({workload("spin.lua"), "plain"}));
    running.read_until("READY");
    if (root) other = running.pid();
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      struct stat status {};
      if (other == 0 && name.find_first_not_of("0123456789") == std::string::npos &&
          ::stat(entry.path().c_str(), &status) == 0 && status.st_uid != ::geteuid())
        other = std::stoi(name);
    }
    INFO("a process of another user is needed");
    REQUIRE(other != 0);
    for (const char* const command : {"dump", "record"}) {
      const Finished finished = run(as_other + Words{folder.path("luaspy"), command, "--pid", std::to_string(other)});
      check(finished, 4,
            root ? fmt::format("belongs to user 0, luaspy runs as user {}; .*sudo|ptrace_scope", user)
                 : "belongs to user|kernel thread|ptrace_scope");
    }
  }
  SECTION("a process that forbids it") {
    std::filesystem::rename(compile(folder, "guarded"), folder.path("target"));
    Running running(as_other + Words{folder.path("target")});
    running.read_until("READY");
    for (const char* const command : {"dump", "record"}) {
      const Finished finished = run(as_other + Words{folder.path("luaspy"), command, "--pid", pid_of(running)});
      check(finished, 4, "not dumpable.*sudo|ptrace_scope");
    }
  }
}

TEST_CASE("the target ends while it is recorded", "[commands]") {
  const Folder folder;
  for (const bool killed : {false, true}) {
    Running running(lua({workload("share.lua"), "75", killed ? "0" : "1"}));
    running.read_until("READY");
    Running luaspy(
        with_errors(folder.path("errors"), {luaspy_program, "record", "-r", "1000", "-o",
                                            folder.path("profile.speedscope.json"), "--pid", pid_of(running)}));
    await_recording(luaspy);
    if (killed) ::kill(running.pid(), SIGKILL);
    CHECK(luaspy.wait() == 0);
    INFO(read_file(folder.path("errors")));
    CHECK(read_file(folder.path("errors")).find("target has ended") != std::string::npos);
    CHECK(check_speedscope(read_file(folder.path("profile.speedscope.json"))) > 10);
    CHECK(running.wait() == (killed ? 137 : 0));
  }
}

TEST_CASE("no thread stands still for more of the time than --max-stopped allows", "[commands]") {
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  const Folder folder;
  const Finished bounded = luaspy({"record", "-d", "3", "-r", "10000", "--max-stopped", "2", "-o",
                                   folder.path("profile.speedscope.json"), "--pid", pid_of(running)});
  check(bounded, 0, "rate lowered to [0-9.]+ Hz .*more than 2 %");
  std::smatch match;
  REQUIRE(std::regex_search(bounded.err, match, std::regex("in total, ([0-9.]+) % of the time")));
  CHECK(std::stod(match[1]) < 5);  // without a bound it is 20 and more; on a busy machine the last stop may be long
  CHECK(std::regex_search(bounded.err, std::regex("lost: .*[0-9]{4,} skipped ticks")));
  const Finished enough = luaspy({"record", "-d", "1", "-r", "10", "--max-stopped", "100", "-o",
                                  folder.path("profile.speedscope.json"), "--pid", pid_of(running)});
  CHECK(enough.status == 0);
  CHECK(enough.err.find("rate lowered") == std::string::npos);
  CHECK(enough.err.find("skipped") == std::string::npos);
}

TEST_CASE("output that cannot be written", "[commands]") {
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  const auto record = [&](const std::string& file) {
    return luaspy({"record", "--idle", "-d", "0.3", "-o", file, "--pid", pid_of(running)});
  };
  const Folder folder;
  for (const std::string& file : {folder.path("missing/profile"), folder.path()}) {
    const Finished finished = record(file);
    check(finished, 8, "Cannot write " + file);
    CHECK(finished.err.find("times a second") == std::string::npos);  // printed before the recording, not after it
  }
  const Finished full = record("/dev/full");
  check(full, 8, "Cannot write all of /dev/full: No space left on device.");
  CHECK(full.err.find("written:") == std::string::npos);
  for (const std::string format : {"folded", "speedscope"}) {
    const Finished to_stdout = run({"/bin/sh", "-c", "\"$@\" >/dev/full", "sh", luaspy_program, "record", "--idle",
                                    "-d", "0.3", "-f", format, "-o", "-", "--pid", pid_of(running)});
    check(to_stdout, 8, "Cannot write all of the output: No space left on device.");
  }
  const Finished dump_full = run(
      {"/bin/sh", "-c", "\"$@\" >/dev/full", "sh", luaspy_program, "dump", "--pid", pid_of(running)});
  check(dump_full, 8, "Cannot write all of the dump: No space left on device.");
  const Finished report_full = run({"/bin/sh", "-c", "\"$@\" >/dev/full", "sh", luaspy_program, "ps"});
  check(report_full, 8, "Cannot write all of the list: No space left on device.");
  check(luaspy({"report", folder.path("nothing.luaspy")}), 2, "nothing.luaspy: No such file or directory.");
  check(luaspy({"report", folder.path()}), 2, ": Is a directory.");
}

TEST_CASE("a reader that closes the pipe ends luaspy as SIGPIPE does, without a word", "[commands]") {
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  const Folder folder;
  const std::string raw = folder.path("a.luaspy"), pid = pid_of(running);
  REQUIRE(luaspy({"record", "--idle", "-d", "0.3", "-o", raw, "--pid", pid}).status == 0);
  for (const Words& command : {Words{"report", raw},
                               {"report", raw, "-f", "folded", "-o", "-"},
                               {"ps"},
                               {"ps", "--json"},
                               {"manual"},
                               {"dump", "--pid", pid},
                               {"dump", "--json", "--pid", pid},
                               {"top", "--batch", "--count", "3", "--interval", "0.1", "--pid", pid},
                               {"doctor", "--pid", pid},
                               {"record", "--idle", "-d", "0.3", "-f", "folded", "-o", "-", "--pid", pid}}) {
    for (const std::string before : {"", "trap '' PIPE; "}) {
      // The reader has gone before luaspy begins. What a shell ignores, its commands ignore.
      const Finished finished = run(
          Words{"/bin/bash", "-c", before + "exec 4> >(:); wait $!; \"$@\" >&4", "bash", luaspy_program} + command);
      INFO(command.front() << ' ' << before << ": " << finished.err);
      CHECK(finished.status == 141);
      CHECK(finished.err.find("annot write") == std::string::npos);
      if (command.front() != "record" && command.front() != "ps") CHECK(finished.err.empty());
    }
  }
}

TEST_CASE("only data on standard output", "[commands][smoke]") {
  Running running(lua({workload("share.lua"), "75", "0"}));
  running.read_until("READY");
  const Finished folded = luaspy({"record", "-d", "0.5", "-f", "folded", "-o", "-", "--pid", pid_of(running)});
  CHECK(folded.status == 0);
  CHECK(std::regex_match(folded.out, std::regex("([^\\n]+ [0-9]+\\n)+")));
  CHECK(folded.out.find("luaspy: ") == std::string::npos);
  const Finished speedscope = luaspy({"record", "-d", "0.5", "-f", "speedscope", "-o", "-", "--pid", pid_of(running)});
  CHECK(speedscope.status == 0);
  CHECK(check_speedscope(speedscope.out) > 5);
  CHECK(speedscope.err.find("samples of 1 thread") != std::string::npos);
  CHECK(speedscope.err.find("\x1b[") == std::string::npos);
}

TEST_CASE("a command that cannot be started", "[commands]") {
  const Folder folder;
  const std::string text = folder.write("text", "print('hello')\n", 0644);
  check(luaspy({"record", "--", folder.path("missing")}), 127, "Cannot start .*missing: No such file");
  check(run({"env", "PATH=/usr/bin:/bin", luaspy_program, "record", "--", "no-such-command-in-path"}), 127,
        "Cannot start no-such-command-in-path");
  check(luaspy({"record", "--", text}), 126, "Cannot start .*text: Permission denied");
  check(luaspy({"record", "--", folder.path()}), 126, "Cannot start .*: Permission denied");
}

TEST_CASE("a launched command keeps its exit status and its files", "[commands][smoke]") {
  const char* const name = GENERATE(lua54, luajit);
  INFO(name);
  const Folder folder;
  const auto record = [&](const Words& command, const std::string& input = {}) {
    return run(
        Words{luaspy_program, "record", "-r", "1000", "-o", folder.path("profile.speedscope.json"), "--"} + command,
        input);
  };
  for (int i = 0; i < 10; ++i)
    CHECK(record({"/bin/sh", "-c", "exit 7"}).status == 7);  // it may end before luaspy looks
  CHECK(record({"/bin/sh", "-c", "kill -TERM $$"}).status == 143);
  CHECK(record({"/bin/sh", "-c", "kill -KILL $$"}).status == 137);
  CHECK(record(lua({"-e", "os.exit(7)"}, name)).status == 7);
  CHECK(record(lua({"-e", "error('broken')"}, name)).status == 1);
  CHECK(record(lua({"-e", "local t = os.clock() while os.clock() - t < 0.3 do end os.exit(true)"}, name)).status == 0);
  // Everything after the command's name belongs to the command.
  CHECK(record(lua({"-", "-d", "5", "--pid", "1"}, name), "os.exit(#arg == 4 and arg[1] == '-d' and 42)").status == 42);

  const Finished echo = record(lua({"-e",
                                    "local t = os.clock() while os.clock() - t < 1 do end "
                                    "io.write(io.read('*a'):upper()) io.stderr:write('to stderr\\n')"},
                                   name),
                               "some input\n");
  INFO(echo.err);
  CHECK(echo.status == 0);
  CHECK(echo.out == "SOME INPUT\n");
  CHECK(echo.err.find("to stderr\n") != std::string::npos);
  CHECK(check_speedscope(read_file(folder.path("profile.speedscope.json"))) > 100);  // ms
}

TEST_CASE("without anything to show nothing is written", "[commands]") {
  const Folder folder;
  const std::string output = folder.path("profile.folded"), kept = folder.write("kept.folded", "as before\n", 0644);
  check(luaspy({"record", "-o", output, "--", "true"}), 11, "^luaspy: No samples: the command ended after .*\n$");
  CHECK_FALSE(std::filesystem::exists(output));
  check(luaspy({"record", "-o", kept, "--", "true"}), 11, "No samples");
  CHECK(read_file(kept) == "as before\n");
  check(luaspy({"record", "-o", kept, "--", folder.path("missing")}), 127, "Cannot start");
  CHECK(read_file(kept) == "as before\n");
  // A second of work, and no Lua.
  const Words works = {"/bin/sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"};
  check(luaspy(Words{"record", "-o", output, "--"} + works), 5, "No Lua: neither /bin/sh nor anything");
  CHECK_FALSE(std::filesystem::exists(output));
  CHECK(luaspy(Words{"record", "--mode", "native", "-o", output, "--"} + works).status == 0);
  CHECK(std::filesystem::exists(output));
}

TEST_CASE("nothing is started if the output cannot be written", "[commands]") {
  const Folder folder;
  const std::string marker = folder.path("marker");
  const Words touch = {"--", "touch", marker};
  check(luaspy(Words{"record", "-o", folder.path("none/profile.html")} + touch), 8,
        "Cannot write .*: No such file or directory\\.\n$");
  check(luaspy(Words{"record", "-o", folder.path()} + touch), 8, "Cannot write .*: Is a directory\\.\n$");
  const std::string script = folder.write("my.lua", "as before\n");
  check(luaspy(Words{"record", "-o", script} + touch), 2,
        "^luaspy: [^\n]*my\\.lua: no format has the ending \\.lua\\. Those that there are: \\.html, \\.svg, [^\n]*\n$");
  CHECK(read_file(script) == "as before\n");
  CHECK_FALSE(std::filesystem::exists(marker));
}

TEST_CASE("what a launched command starts is recorded", "[commands]") {
  const Folder folder;
  const std::string script = folder.write(
      "works.lua", "local function works() local t = os.clock() while os.clock() - t < 0.7 do end end works()\n", 0644);
  const Words program = lua({script}, lua54);
  std::string line;
  for (const std::string& word : program) line += "'" + word + "' ";
  const Finished finished = luaspy({"record", "-f", "folded", "-o", "-", "--", "/bin/sh", "-c", line + "; true"});
  INFO(finished.out << finished.err);
  CHECK(finished.status == 0);
  CHECK(finished.out.find("works (" + script + ":1)") != std::string::npos);
}

TEST_CASE("a command that makes itself a daemon is recorded to its end", "[commands]") {
  const Folder folder;
  const std::string program = compile(folder, "daemon", source_version("5.4"));
  const std::string output = folder.path("profile.folded");
  Running luaspy(with_errors(folder.path("errors"), {luaspy_program, "record", "-o", output, "--", program}));
  luaspy.read_until("READY");
  luaspy.send("\n");
  CHECK(luaspy.wait() == 0);
  std::int64_t after = 0;
  for (const FoldedStack& stack : parse_folded(read_file(output)))
    after += std::ranges::count(stack.frames, "after (daemon:3)") != 0 ? stack.count : 0;
  INFO(read_file(output) << read_file(folder.path("errors")));
  CHECK(after >= 80);  // of 120: at first, luaspy has to find the new process
  CHECK(read_file(folder.path("errors")).find("lives on") == std::string::npos);
}

TEST_CASE("a command that leaves a process behind, which runs Lua only then", "[commands]") {
  const Folder folder;
  const std::string script = folder.write("works.lua",
                                          "local function works() while os.clock() < 0.6 do end end works()\n", 0644);
  std::string line;
  for (const std::string& word : lua({script}, lua54)) line += "'" + word + "' ";
  const Finished finished = luaspy({"record", "-f", "folded", "-o", "-", "--", "/bin/sh", "-c",
                                    "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exec " + line + ") & exit 3"});
  INFO(finished.out << finished.err);
  CHECK(finished.status == 3);
  std::int64_t samples = 0;
  for (const FoldedStack& stack : parse_folded(finished.out))
    samples += std::ranges::count(stack.frames, "works (" + script + ":1)") != 0 ? stack.count : 0;
  CHECK(samples >= 40);  // of 60
}

TEST_CASE("what is not followed and lives on is named, with how to record it", "[commands]") {
  const Folder folder;
  Running running({compile(folder, "daemon", source_version("5.4"))});
  running.read_until("READY");
  Running luaspy(with_errors(folder.path("errors"), {luaspy_program, "record", "-r", "1000", "-o",
                                                     folder.path("profile.folded"), "--pid", pid_of(running)}));
  await_recording(luaspy);
  running.send("\n");
  CHECK(luaspy.wait() == 0);
  const std::string text = read_file(folder.path("errors"));
  INFO(text);
  std::smatch found;
  REQUIRE(std::regex_search(
      text, found,
      std::regex("  the target has ended\n[^]*  process (\\d+) \\(.*daemon[0-9.]*\\), which it has started, "
                 "lives on: luaspy record --pid (\\d+)\n")));
  CHECK(found[1] == found[2]);
  CHECK(found[1] != pid_of(running));
}

TEST_CASE("a launched command outlives the recording", "[commands]") {
  const Folder folder;
  Running luaspy(with_errors(
      folder.path("errors"),
      Words{luaspy_program, "record", "-d", "0.2", "-r", "500", "-o", folder.path("profile.speedscope.json"), "--"} +
          lua({"-e", "io.write('READY\\n') io.flush() local n = 0 repeat n = n + 1 local f = io.open('" +
                         folder.path("go") + "') until f print('END') os.exit(9)"})));
  luaspy.read_until("READY");
  luaspy.await("the summary", [&] { return read_file(folder.path("errors")).find("written:") != std::string::npos; });
  CHECK(check_speedscope(read_file(folder.path("profile.speedscope.json"))) > 10);
  const std::string still = "process [0-9]+ is still running; luaspy ends when it does \\(--end-command ends it\\)";
  luaspy.await("what it waits for",
               [&] { return std::regex_search(read_file(folder.path("errors")), std::regex(still)); });
  CHECK(luaspy.alive());  // waits for its command, which still works
  folder.write("go", "");
  luaspy.read_until("END");
  CHECK(luaspy.wait() == 9);
}

TEST_CASE("a command is ended with its recording if that is asked for", "[commands]") {
  const Folder folder;
  for (const char* const command : {"record", "alloc"}) {
    const std::string output = folder.path(std::string(command) + ".folded");
    const Finished ended = luaspy(Words{command, "-d", "0.5", "--end-command", "-o", output, "--"} +
                                  lua({"-e", "while true do local made = {} end"}));
    check(ended, 0, "process [0-9]+ is asked to end");
    CHECK(std::filesystem::exists(output));
  }
  // A command that has something to say has its own status.
  const Finished traps = luaspy({"record", "--mode", "native", "-d", "0.5", "--end-command", "-o",
                                 folder.path("a.folded"), "--", "/bin/sh", "-c",
                                 "trap 'exit 7' TERM; while :; do :; done"});
  CHECK(traps.status == 7);
  CHECK(luaspy({"record", "--end-command", "--pid", "1"}).err ==
        "luaspy: --end-command needs a command (luaspy record --help)\n");
}

TEST_CASE("what a command writes is not in a profile that goes to standard output", "[commands]") {
  for (const char* const command : {"record", "alloc"}) {
    const Finished finished = luaspy(
        Words{command, "-f", "folded", "-o", "-", "--"} +
        lua({"-e",
             "local t = os.clock() repeat local made = {} until os.clock() - t > 0.5 print('from the command')"}));
    check(finished, 0, "what the command writes there goes to standard error\n");
    CHECK(std::regex_match(finished.out, std::regex("([^\\n]+ [0-9]+\\n)+")));
    CHECK(finished.out.find("from the command") == std::string::npos);
    CHECK(finished.err.find("from the command\n") != std::string::npos);
  }
}

TEST_CASE("signals end the recording and write it", "[commands][smoke]") {
  const Folder folder;
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  Running running(lua({workload("spin.lua"), "plain"}));
  running.read_until("READY");
  Running luaspy(
      with_errors(folder.path("errors"), {luaspy_program, "record", "-r", "1000", "-o",
                                          folder.path("profile.speedscope.json"), "--pid", pid_of(running)}));
  await_recording(luaspy);
  await_work(luaspy, running.pid());
  ::kill(luaspy.pid(), signal);
  CHECK(luaspy.wait() == 0);
  INFO("signal " << signal << "\n" << read_file(folder.path("errors")));
  CHECK(check_speedscope(read_file(folder.path("profile.speedscope.json"))) > 10);
  CHECK(running.alive());
  CHECK(status_field(running.pid(), "TracerPid") == "0");
}

TEST_CASE("a signal to luaspy is not one to its command, and a second SIGINT ends luaspy at once", "[commands]") {
  const Folder folder;
  Killer killer;
  Running luaspy(with_errors(folder.path("errors"),
                             Words{luaspy_program, "record", "-r", "1000", "-o", folder.path("profile.speedscope.json"),
                                   "--", "/bin/sh", "-c", "echo $$; exec \"$@\"", "sh"} +
                                 lua({workload("spin.lua"), "plain"})));
  killer.pid = std::stoi(luaspy.read_until("READY").front());
  await_recording(luaspy);
  await_work(luaspy, killer.pid);
  ::kill(luaspy.pid(), SIGINT);
  luaspy.await("the summary", [&] { return read_file(folder.path("errors")).find("written:") != std::string::npos; });
  CHECK(check_speedscope(read_file(folder.path("profile.speedscope.json"))) > 10);
  CHECK(luaspy.alive());
  CHECK(::kill(killer.pid, 0) == 0);
  CHECK(status_field(killer.pid, "State") == "R");
  ::kill(luaspy.pid(), SIGINT);
  CHECK(luaspy.wait() == 130);
  CHECK(::kill(killer.pid, 0) == 0);
}

TEST_CASE("a killed luaspy leaves the target running", "[commands][smoke]") {
  const char* const name = GENERATE(lua54, luajit);
  INFO(name);
  const Folder folder;
  Running running(lua({"-e",
                       "io.write('READY\\n') io.flush() while true do local n = 0 for i = 1, 10000 do n = n + i end "
                       "local f = io.open('" +
                           folder.path("ask") + "') if f then f:close() os.remove('" + folder.path("ask") +
                           "') io.write('HERE\\n') io.flush() end end"},
                      name));
  running.read_until("READY");
  for (int i = 0; i < 25; ++i) {
    {
      Running luaspy(
          with_errors(folder.path("errors"), {luaspy_program, "record", "-r", "10000", "-o",
                                              folder.path("profile.speedscope.json"), "--pid", pid_of(running)}));
      await_recording(luaspy);
      ::kill(luaspy.pid(), SIGKILL);
      CHECK(luaspy.wait() == 137);
    }
    CHECK(status_field(running.pid(), "TracerPid") == "0");
    const std::string state = status_field(running.pid(), "State");
    CHECK(state != "T");
    CHECK(state != "t");
    folder.write("ask", "");
    running.read_until("HERE");  // it still works
  }
}

TEST_CASE("the target's own signals arrive while it is recorded", "[commands]") {
  const Folder folder;
  // A shell counts USR1 in a trap, between its commands: with --mode native it is a normal target.
  Running running({"/bin/sh", "-c", "n=0; trap 'n=$((n+1)); echo got $n' USR1; echo READY; while :; do :; done"});
  running.read_until("READY");
  Running luaspy(
      with_errors(folder.path("errors"), {luaspy_program, "record", "--mode", "native", "-r", "10000", "-o",
                                          folder.path("profile.speedscope.json"), "--pid", pid_of(running)}));
  await_recording(luaspy);
  for (int i = 1; i <= 1000; ++i) {
    ::kill(running.pid(), SIGUSR1);
    running.read_until(fmt::format("got {}", i));  // no signal is lost
  }
  ::kill(luaspy.pid(), SIGTERM);
  CHECK(luaspy.wait() == 0);
  CHECK(read_file(folder.path("errors")).find(" samples of 1 thread") != std::string::npos);
  ::kill(running.pid(), SIGTERM);
  CHECK(running.wait() == 128 + SIGTERM);
  CHECK(running.rest().empty());  // none came twice
}

TEST_CASE("completion knows the objects that every Lua has", "[commands]") {
  const Finished completed = run(
      {"bash", "-c",
       "source <(\"$0\" completion bash); COMP_WORDS=(luaspy heap --object r); COMP_CWORD=3; "
       "_luaspy; echo \"${COMPREPLY[*]}\"",
       luaspy_program});
  INFO(completed.err);
  CHECK(completed.out == "registry\n");
}

}  // namespace luaspy::live::commands_test
