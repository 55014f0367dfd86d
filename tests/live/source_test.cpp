// Reading lines of the target's files, whatever its root and working directory are; only regular
// files are read.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "attach/rooted_file.h"
#include "attach/source_lines.h"
#include "support/harness.h"

namespace luaspy::live::source_test {
namespace {

std::string line_of(pid_t pid, const std::string& file, int line) {
  const std::optional<SourceLine> found = SourceLines(SourceFiles(pid)).line(file, line);
  return found ? found->text : "none";
}

std::string content(const FileDescriptor& file) {
  const FileDescriptor opened = system::open_file("/proc/self/fd/" + std::to_string(file.number()), O_RDONLY);
  std::array<char, 100> buffer;
  return file ? std::string(system::reread(opened, buffer)) : "none";
}

}  // namespace

TEST_CASE("the text of a line", "[source]") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("lib"));
  folder.write("lib/a.lua", "one\n  two \t\r\nthree\n\rfour\rfive\nsix \x1b[31m");
  folder.write("bom.lua",
               "\xef\xbb\xbf"
               "first\n" +
                   std::string(300, 'x') + "\n");
  folder.write("compiled.luac", "\x1bLua\n\n\n");
  folder.write("large.lua", std::string((4 << 20) + 1, '\n'));
  REQUIRE(::mkfifo(folder.path("fifo.lua").c_str(), 0666) == 0);
  REQUIRE(::symlink("lib/a.lua", folder.path("link.lua").c_str()) == 0);
  REQUIRE(::symlink("/dev/zero", folder.path("zero.lua").c_str()) == 0);
  Running running({"/usr/bin/env", "-C", folder.path("lib"), "/bin/sh", "-c", "echo READY; read x"});
  running.read_until("READY");
  const pid_t pid = running.pid();
  CHECK(line_of(pid, "a.lua", 1) == "one");
  CHECK(line_of(pid, "./a.lua", 2) == "two");
  CHECK(line_of(pid, "../lib/a.lua", 3) == "three");
  CHECK(line_of(pid, folder.path("lib/a.lua"), 4) == "four");
  CHECK(line_of(pid, "../link.lua", 5) == "five");
  CHECK(line_of(pid, "a.lua", 6) == "six \\x1b[31m");
  CHECK(line_of(pid, "../bom.lua", 1) == "first");
  CHECK(line_of(pid, "../bom.lua", 2) == std::string(120, 'x') + "...");
  for (const std::string file : {"missing.lua", "", "../fifo.lua", "../zero.lua", "../large.lua", "../compiled.luac",
                                 "..", "[string \"a.lua\"]", "/dev/tty", "/proc/self/mem"}) {
    INFO(file);
    CHECK(line_of(pid, file, 1) == "none");
  }
  for (const int line : {0, -1, 7, 1 << 30}) CHECK(line_of(pid, "a.lua", line) == "none");
  CHECK(line_of(pid, "../bom.lua", 3) == "none");
  CHECK(SourceLines(SourceFiles(pid)).line("a.lua", 1)->changed == false);
  folder.write("lib/a.lua", "other\n");
  std::filesystem::last_write_time(folder.path("lib/a.lua"),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  SourceLines lines{SourceFiles(pid)};
  CHECK(lines.line("a.lua", 1)->changed);
  CHECK(lines.line("a.lua", 1)->text == "other");
}

// As package managers replace files: the new one has the time of its package.
TEST_CASE("a file that was replaced by one with an older time has changed, but a core's has not", "[source]") {
  const Folder folder;
  const std::string file = folder.write("a.lua", "one\n"), other = folder.path("other.lua");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(100);
  std::filesystem::last_write_time(file, long_ago);
  Running running({"/bin/sh", "-c", "echo READY; read x"});
  running.read_until("READY");
  const auto changed = [&](const SourceFiles& files) { return SourceLines(files).line(file, 1)->changed; };
  CHECK_FALSE(changed(SourceFiles(running.pid())));
  running.await("the new file is younger than the process", [&] {
    folder.write("other.lua", "two\n");
    std::filesystem::last_write_time(other, long_ago);
    std::filesystem::rename(other, file);
    return changed(SourceFiles(running.pid()));
  });
  const std::int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
  CHECK_FALSE(changed(SourceFiles::of_core((now_s - 3600) * 1'000'000'000)));
  CHECK(changed(SourceFiles::of_core((now_s - 1000 * 3600) * 1'000'000'000)));
}

// Both the kernel with RESOLVE_IN_ROOT, and luaspy itself where openat2 does not exist, must never
// leave the root.
TEST_CASE("symbolic links stay in the target's root", "[source]") {
  const Folder folder;
  std::filesystem::create_directories(folder.path("root/app"));
  folder.write("outside.lua", "outside");
  folder.write("root/inside.lua", "inside");
  folder.write("root/outside.lua", "of the root");
  for (const auto& [target, name] : {std::pair{"/inside.lua", "absolute"},
                                     {"../../../outside.lua", "up"},
                                     {"..", "parent"},
                                     {"loop", "loop"},
                                     {"/app/absolute", "twice"}}) {
    REQUIRE(::symlink(target, folder.path("root/app/" + std::string(name)).c_str()) == 0);
  }
  const FileDescriptor root = system::open_file(folder.path("root"), O_PATH | O_DIRECTORY);
  for (const auto& [path, expected] : {std::pair{"/app/absolute", "inside"},
                                       {"app/up", "of the root"},
                                       {"/app/parent/inside.lua", "inside"},
                                       {"/../../outside.lua", "of the root"},
                                       {"/app/loop", "none"},
                                       {"/app/twice", "inside"},
                                       {"/app/missing", "none"},
                                       {"/inside.lua/x", "none"}}) {
    INFO(path);
    system::Failure failure;
    CHECK(content(system::open_in_root(root, path, O_PATH, &failure)) == expected);
    CHECK(content(open_in_root_stepwise(root, path)) == expected);
  }
}

// A process with its own root, which a user namespace allows for any user.
TEST_CASE("files of a target with another root", "[source]") {
  const Folder folder;
  std::filesystem::create_directories(folder.path("root/app"));
  folder.write("root/app/main.lua", "in the root\n");
  folder.write("root/lib.lua", "beside it\n");
  REQUIRE(::symlink("/lib.lua", folder.path("root/app/link.lua").c_str()) == 0);
  std::array<int, 2> ready{};
  REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const bool entered = (::geteuid() == 0 || ::unshare(CLONE_NEWUSER) == 0) &&
                         ::chroot(folder.path("root").c_str()) == 0 && ::chdir("/app") == 0;
    (void)!::write(ready[1], entered ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = 0;
  const bool heard = ::read(ready[0], &answer, 1) == 1;
  const std::vector<std::string> lines = {line_of(pid, "main.lua", 1), line_of(pid, "/app/main.lua", 1),
                                          line_of(pid, "link.lua", 1), line_of(pid, "../lib.lua", 1),
                                          line_of(pid, folder.path("root/lib.lua"), 1)};
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]), ::close(ready[1]);
  REQUIRE(heard);
  REQUIRE(answer == 'y');
  CHECK(lines == std::vector<std::string>{"in the root", "in the root", "beside it", "beside it", "none"});
}

}  // namespace luaspy::live::source_test
