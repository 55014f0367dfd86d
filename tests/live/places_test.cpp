// Different places of the target and of luaspy (users, containers, filters): each must give the
// right stack, or be refused with the true cause.

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "attach/switch_log.h"
#include "support/harness.h"
#include "support/skip.h"

namespace luaspy::live::places_test {
namespace {

const bool root = ::geteuid() == 0;

// The words that run a command as another user, for tests of root; an ordinary user runs it as
// itself.
Words as_user(int user = 65534) {
  if (!root) return {};
  return {"setpriv", fmt::format("--reuid={}", user), fmt::format("--regid={}", user), "--clear-groups",
          "--inh-caps=-all"};
}

int user_number() { return root ? 65534 : static_cast<int>(::geteuid()); }

// Needed by all rows: luaspy where any user may execute it, the programs confine and contain, and
// Luas linked with musl.
class Parts {
 public:
  Parts() {
    std::filesystem::copy_file(luaspy_program, folder_.path("luaspy"));
    std::filesystem::copy_file(workload("spin.lua"), folder_.path("spin.lua"));
    std::filesystem::copy_file(workload("states.lua"), folder_.path("states.lua"));
    std::filesystem::copy_file(workload("traceback.lua"), folder_.path("traceback.lua"));
    compile(folder_, "confine"), compile(folder_, "contain");
    build_musl();
  }
  std::string path(const std::string& file) const { return folder_.path(file); }

 private:
  // As one translation unit, like onelua.c in the sources: that takes a third of the time.
  void build_musl() {
    std::istringstream table(read_file(std::string(LUASPY_TARGETS) + "/sources.tsv"));
    std::string version, sources, rest;
    while (table >> version >> sources >> rest && version != "5.4.7") {
    }
    std::string text =
        "#include \"lprefix.h\"\n#define LUA_CORE\n#define LUA_LIB\n#include \"luaconf.h\"\n#undef LUAI_FUNC\n#undef "
        "LUAI_DDEC\n#undef LUAI_DDEF\n"
        "#define LUAI_FUNC static\n#define LUAI_DDEC(def)\n#define LUAI_DDEF static\n";
    for (const char* const part :
         {"lzio",   "lctype",  "lopcodes", "lmem",     "lundump",  "ldump",  "lstate",  "lgc",      "llex",
          "lcode",  "lparser", "ldebug",   "lfunc",    "lobject",  "ltm",    "lstring", "ltable",   "ldo",
          "lvm",    "lapi",    "lauxlib",  "lbaselib", "lcorolib", "ldblib", "liolib",  "lmathlib", "loadlib",
          "loslib", "lstrlib", "ltablib",  "lutf8lib", "linit",    "lua"})
      text += fmt::format("#include \"{}.c\"\n", part);
    const std::string all = folder_.write("all.c", text), object = folder_.path("all.o");
    const Words compile = {
        "musl-gcc", "-O1",  "-fPIE", "-DLUA_USE_POSIX", "-I" + sources, "-I" + sources + "/src", "-c",
        "-o",       object, all};
    for (const Words& command : {compile, Words{"musl-gcc", "-pie", "-o", path("musl-dynamic"), object, "-lm"},
                                 Words{"musl-gcc", "-static", "-o", path("musl-static"), object, "-lm"}}) {
      const Finished built = run(command);
      INFO("musl-tools is needed: " << built.err);
      REQUIRE(built.status == 0);
    }
  }
  Folder folder_;
};

// Created once, removed at the end of the tests.
const Parts& parts() {
  static const Parts made;
  return made;
}

Words spin(const std::string& lua) { return {lua, parts().path("spin.lua"), "plain"}; }

// The process that a wrapper waits for.
pid_t child_of(const Running& running) {
  const std::string file = fmt::format("/proc/{0}/task/{0}/children", running.pid());
  return std::stoi("0" + read_file(file));
}

Finished dump_as(const Words& who, pid_t pid) {
  return run(who + Words{parts().path("luaspy"), "dump", "--pid", std::to_string(pid)});
}

// Checks the stack of spin.lua.
void check_stack(const Finished& finished) {
  INFO(finished.status << "\n" << finished.out << finished.err);
  CHECK(finished.status == 0);
  for (const char* const name :
       {"rest (", "by_upvalue (", "by_local (", "object:method (", "by_global (", "main chunk ("})
    CHECK(finished.out.find(name) != std::string::npos);
}

void check_refused(const Finished& finished, const std::string& pattern, int status = 4) {
  INFO(finished.out << finished.err << "expected: " << pattern);
  CHECK(finished.status == status);
  CHECK(std::regex_search(finished.err, std::regex(pattern)));
  CHECK(finished.out.find("main chunk") == std::string::npos);
}

const Words short_recording = {"record", "-r", "200", "-d", "1", "-f", "folded", "-o", "-", "--pid"};

// Shell text after a command: runs the command in the background, and waits until it says READY
// over the pipe "$4". Its process is $!.
const std::string await_ready = " > \"$4\" & while read -r line && [ \"$line\" != READY ]; do :; done < \"$4\"; ";

// Checks the same stack, with native frames down to the thread's first.
void check_recorded(const Finished& finished) {
  INFO(finished.status << "\n" << finished.out << finished.err);
  REQUIRE(finished.status == 0);
  std::int64_t all = 0, right = 0;
  for (const FoldedStack& stack : parse_folded(finished.out)) {
    std::string names;
    for (const std::string& frame : stack.frames) names += frame.substr(0, frame.find(' ')) + ';';
    all += stack.count;
    if (names.find("main;") != names.npos &&
        names.find("by_global;object:method;object.field.call;by_local;by_upvalue;rest;") != names.npos)
      right += stack.count;
  }
  CHECK(all > 0);  // more if the machine is not busy
  CHECK(right == all);
  std::smatch found;
  REQUIRE(std::regex_search(finished.err, found, std::regex("([0-9.]+) % reach")));
  CHECK(std::stod(found[1]) >= 99);
}

void check_recording(const Words& who, pid_t pid) {
  check_recorded(run(who + Words{parts().path("luaspy")} + short_recording + Words{std::to_string(pid)}));
}

void copy_container(const Folder& folder) {
  for (const char* const name : {"bin", "lib", "work"}) std::filesystem::create_directory(folder.path(name));
  std::filesystem::copy_file(parts().path("musl-dynamic"), folder.path("bin/lua"));
  std::filesystem::copy_file("/lib/ld-musl-x86_64.so.1", folder.path("lib/ld-musl-x86_64.so.1"));
  for (const char* const name : {"spin.lua", "states.lua"})
    std::filesystem::copy_file(parts().path(name), folder.path(std::string("work/") + name));
}

// user_namespaces(7): they cannot be created in a chroot, or where the system forbids it. Then
// unshare fails, which is what this checks.
bool may_make_users(const Words& as) {
  const Finished finished = run(as + Words{"unshare", "-U", "true"});
  if (finished.status == 0) return true;
  WARN("no user namespaces here: " << finished.err);
  CHECK(finished.err.find("not permitted") != std::string::npos);
  return false;
}

}  // namespace

TEST_CASE("a target in a container", "[places]") {
  const Folder folder;
  copy_container(folder);
  const bool own_users = !root || GENERATE(false, true);
  if (own_users && !may_make_users(root ? as_user() : Words{}))
    return test::skip(
        "an ordinary user may not make a user namespace here: see kernel.unprivileged_userns_clone and "
        "user.max_user_namespaces (sysctl)");
  Running container((own_users ? as_user() : Words{}) +
                    Words{parts().path("contain"), folder.path(), "/bin/lua", "/work/spin.lua", "plain"});
  container.read_until("READY");
  const pid_t pid = child_of(container);
  const Finished own = dump_as(own_users ? as_user() : Words{}, pid);
  check_stack(own);
  CHECK(own.out.find("rest() return 1 end") != std::string::npos);  // the source, from inside
  check_recording(own_users ? as_user() : Words{}, pid);
  if (root && own_users) check_stack(dump_as({}, pid));
  if (root)
    check_refused(
        dump_as(as_user(65533), pid),
        fmt::format("belongs to user {}, luaspy runs as user 65533; run luaspy with sudo", own_users ? 65534 : 0));
}

TEST_CASE("luaspy in namespaces of its own", "[places]") {
  Running running(spin(parts().path("musl-static")));
  running.read_until("READY");
  const Words luaspy = {parts().path("luaspy"), "dump", "--pid", std::to_string(running.pid())};
  if (may_make_users({}))
    check_refused(
        run(Words{"unshare", "-U", "-r"} + luaspy),
        "luaspy is in a user namespace of its own, and that process is not in it; run luaspy with sudo outside");
  const Words other_numbers = root ? Words{"unshare", "--pid", "--fork"}
                                   : Words{"unshare", "-U", "-r", "--pid", "--fork"};
  for (const Words& command : {Words(luaspy.begin() + 1, luaspy.end()), Words{"ps"}, Words{"record", "--", "true"},
                               Words{"dump", "--name", "musl-static"}})
    check_refused(run(other_numbers + Words{luaspy[0]} + command),
                  "/proc belongs to another pid namespace.*--mount-proc");
  // Both in the same namespace.
  const Folder folder;
  REQUIRE(run({"mkfifo", folder.path("pipe")}).status == 0);
  const std::string script = await_ready + "\"$3\" dump --pid $!; status=$?; kill -9 $!; exit $status";
  Words inside = {"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"};
  if (!root) inside = Words{"unshare", "-U", "-r"} + Words(inside.begin() + 1, inside.end());
  check_stack(run(inside + Words{"sh", "-c", "\"$1\" \"$2\" plain" + script, "sh", parts().path("musl-static"),
                                 parts().path("spin.lua"), parts().path("luaspy"), folder.path("pipe")}));
}

TEST_CASE("a program or its library was deleted or replaced", "[places][all]") {
  const bool in_library = GENERATE(false, true), replaced = GENERATE(false, true);
  const Folder folder;
  const std::string original = in_library ? target("lua-5.4.7-shared").core : target("lua-5.4.7-O2").core;
  const std::string name = in_library ? "liblua.so" : "lua";
  std::filesystem::copy_file(original, folder.path(name));
  if (in_library) std::filesystem::copy_file(target("lua-5.4.7-shared").command[0], folder.path("lua"));
  Running running(as_user() + Words{"/usr/bin/env", "LD_LIBRARY_PATH=" + folder.path()} + spin(folder.path("lua")));
  running.read_until("READY");
  REQUIRE(read_file(fmt::format("/proc/{}/maps", running.pid())).find(folder.path(name)) != std::string::npos);
  if (replaced) {
    std::filesystem::copy_file(target(in_library ? "lua-5.1.5-shared" : "lua-5.1.5-O2").core, folder.path("other"));
    std::filesystem::rename(folder.path("other"), folder.path(name));
  } else {
    std::filesystem::remove(folder.path(name));
  }
  INFO(name << (replaced ? " replaced" : " deleted"));
  check_recording({}, running.pid());
  check_recording(as_user(), running.pid());
  const Finished list = run(as_user() + Words{parts().path("luaspy"), "ps"});
  INFO(list.out << list.err);
  CHECK(std::regex_search(list.out, std::regex(fmt::format("(^|\n) *{} .* Lua 5\\.4\\.7 ", running.pid()))));
}

// It has no Lua for most of the time: luaspy looks again before it says so.
TEST_CASE("a library with Lua that is loaded and unloaded all the time", "[places][all]") {
  const Folder folder;
  Running running({compile(folder, "reload"), target("lua-5.4.7-shared").core});
  running.read_until("READY");
  for (int i = 0; i < 12; ++i) {
    const Finished finished = luaspy({"dump", "--pid", std::to_string(running.pid())});
    INFO(finished.err);
    CHECK(finished.err.find("No Lua in process") == std::string::npos);
    CHECK((finished.status == 0 || finished.status == 6));  // 6: there is no state
  }
  CHECK(running.alive());
}

// Two file systems number their first files alike: the file that luaspy finds under the library's
// name is not the one that is mapped.
TEST_CASE("another file system has another file of that name and number", "[places][all]") {
  if (!root) {
    INFO("only root can mount file systems; for an ordinary user unshare fails and says so");
    CHECK(run({"unshare", "--mount", "true"}).status != 0);
    return;
  }
  const Folder folder;
  std::filesystem::create_directory(folder.path("m"));
  const std::string script =
      "m=$1/m; "
      "unshare --mount sh -c 'mount -t tmpfs none \"$1\" && chmod 755 \"$1\" && cp \"$2\" \"$1/liblua.so\" && stat -c "
      "%i \"$1/liblua.so\" > \"$1/../first\" && "
      "shift 2 && exec \"$@\"' sh \"$m\" \"$2\" setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env "
      "LD_LIBRARY_PATH=\"$m\" $5" +
      await_ready +
      "nsenter -t $! -m rm \"$m/liblua.so\"; mount -t tmpfs none \"$m\"; chmod 755 \"$m\"; cp \"$3\" \"$m/liblua.so\"; "
      "stat -c %i \"$m/liblua.so\" > \"$1/second\"; "
      "shift 5; setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \"$@\" $!; status=$?; kill -9 $!; "
      "exit $status";
  REQUIRE(run({"mkfifo", folder.path("pipe")}).status == 0);
  std::filesystem::copy_file(target("lua-5.4.7-shared").command[0], folder.path("lua"));
  const std::string lua = folder.path("lua") + " " + parts().path("spin.lua") + " plain";
  const Finished finished = run(Words{"unshare", "--mount", "sh", "-c", script, "sh", folder.path(),
                                      target("lua-5.4.7-shared").core, target("lua-5.1.5-shared").core,
                                      folder.path("pipe"), lua, parts().path("luaspy")} +
                                short_recording);
  REQUIRE(!read_file(folder.path("first")).empty());
  REQUIRE(read_file(folder.path("first")) == read_file(folder.path("second")));
  check_recorded(finished);
}

TEST_CASE("a program that is linked with musl", "[places]") {
  const char* const name = GENERATE("musl-static", "musl-dynamic");
  Running running(spin(parts().path(name)));
  running.read_until("READY");
  check_recording({}, running.pid());
  Running waiting({parts().path(name), parts().path("traceback.lua"), "plain"});
  waiting.read_until("READY");
  const Finished asleep = dump_as({}, waiting.pid());
  check_stack(asleep);
  CHECK(std::regex_search(asleep.out, std::regex("waits in read")));
}

TEST_CASE("other users, and rights that luaspy lacks", "[places]") {
  const std::string lua = parts().path("musl-static");
  struct Row {
    Words target, luaspy;
    std::string refusal;  // "": the stack is shown
  };
  const std::string sudo = "run luaspy with sudo",
                    root_lacks = "luaspy is root without the capability CAP_SYS_PTRACE.*--cap-add=SYS_PTRACE";
  const Words no_trace = {"setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all"},
              none = {"setpriv", "--bounding-set=-all", "--inh-caps=-all"};
  std::vector<Row> rows = {{{}, {}, ""}, {{}, {"setpriv", "--no-new-privs"}, ""}};
  const std::vector<Row> of_root = {
      {as_user(), {}, ""},
      {as_user(), as_user(), ""},
      {as_user(), as_user() + Words{"--no-new-privs"}, ""},
      {{}, as_user(), "belongs to user 0, luaspy runs as user 65534; " + sudo},
      {{},
       as_user() + Words{"--no-new-privs"},
       "belongs to user 0, luaspy runs as user 65534; run luaspy as root, outside.*no_new_privs"},
      {as_user(65533), as_user(), "belongs to user 65533, luaspy runs as user 65534; " + sudo},
      {{"setpriv", "--ruid=65534"}, as_user(), "rights of another user \\(real 65534, effective 0, .*" + sudo},
      {as_user(),
       {"setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"},
       "rights of another group \\(real 65534.*luaspy runs as 65533\\); " + sudo},
      {{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_raw",
        "--ambient-caps=+net_raw"},
       as_user(),
       "capabilities that luaspy lacks \\(0x2000.*" + sudo},
      {{}, no_trace, "capabilities that luaspy lacks \\(0x80000.*" + root_lacks},
      {as_user(), no_trace, "belongs to user 65534, luaspy runs as user 0; " + root_lacks},
      {no_trace, no_trace, ""},
      {none, none, ""},
      {none, {}, ""},
  };
  if (root) rows.insert(rows.end(), of_root.begin(), of_root.end());
  for (const Row& row : rows) {
    Running running(row.target + spin(lua));
    running.read_until("READY");
    const Finished finished = dump_as(row.luaspy, running.pid());
    if (row.refusal.empty()) check_stack(finished);
    else check_refused(finished, row.refusal);
  }
  // Whoever the test is, process 1 is not an ordinary user's.
  check_refused(dump_as(as_user(), 1),
                fmt::format("belongs to user 0, luaspy runs as user {}; |hidepid", user_number()));
}

TEST_CASE("/proc hides processes", "[places]") {
  Running running(spin(parts().path("musl-static")));
  running.read_until("READY");
  Running own(as_user() + spin(parts().path("musl-static")));
  own.read_until("READY");
  const auto look = [&](const std::string& change, const Words& who, pid_t pid) {
    return run(Words{"unshare", "--mount", "sh", "-c", change + " && exec \"$@\"", "sh"} + who +
               Words{parts().path("luaspy"), "dump", "--pid", std::to_string(pid)});
  };
  if (!root) {
    INFO("only root can mount a /proc that hides processes; for an ordinary user unshare fails and says so");
    CHECK(look("true", {}, own.pid()).status != 0);
    return;
  }
  const std::string hide = "mount -t proc -o hidepid={} proc /proc";
  for (const int level : {1, 2}) {
    const std::string mount = fmt::format(fmt::runtime(hide), level);
    const std::string cause = level == 1
                                  ? "belongs to user 0, luaspy runs as user 65534, and /proc is mounted with hidepid"
                                  : "/proc is mounted with hidepid, which hides it from user 65534";
    check_refused(look(mount, as_user(), running.pid()), cause + "; run luaspy with sudo");
    check_refused(look(mount, as_user(), 99999999), "There is no process 99999999", 3);
    check_stack(look(mount, as_user(), own.pid()));
    check_stack(look(mount, {}, own.pid()));
  }
  check_refused(look("umount -l /proc", {}, own.pid()), "/proc is not mounted.*mount -t proc");
}

TEST_CASE("luaspy under a seccomp filter", "[places]") {
  const Words confine = {parts().path("confine")};
  Running running(spin(parts().path("musl-static")));
  running.read_until("READY");
  Running waiting({parts().path("musl-static"), parts().path("traceback.lua"), "plain"});
  waiting.read_until("READY");
  for (const char* const answer : {"=EPERM", "=ENOSYS"}) {
    Words filter = confine;
    for (const char* const call : {"process_vm_readv", "openat2", "memfd_create", "sched_setattr", "sched_setscheduler",
                                   "sched_setaffinity", "perf_event_open"})
      filter.push_back(std::string(call) + answer);
    filter.push_back("--");
    check_stack(dump_as(filter, waiting.pid()));
    check_recording(filter, running.pid());

    // Where the kernel logs switches for luaspy, it does not need stops.
    const std::string no_stop = std::string("ptrace") + answer;
    if (SwitchLog::open(running.pid()) != nullptr) check_recording(confine + Words{no_stop, "--"}, running.pid());
    const Words no_ptrace = confine + Words{no_stop, std::string("perf_event_open") + answer, "--"};
    const std::string reason = "luaspy may not use ptrace .*seccomp filter.*--cap-add=SYS_PTRACE";
    check_stack(dump_as(no_ptrace, waiting.pid()));
    check_refused(dump_as(no_ptrace, running.pid()), reason);
    const Words whole = {parts().path("luaspy"), "record", "-r", "200", "-f", "folded", "-o", "-"},
                record = whole + Words{"-d", "0.3"};
    check_refused(run(no_ptrace + record + Words{"--pid", std::to_string(running.pid())}),
                  "lost: .*[0-9]+ refused[^]*" + reason);
    const Words busy = {"sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exit 7"};
    check_refused(run(no_ptrace + whole + Words{"--"} + busy), "lost: .*[0-9]+ refused[^]*" + reason, 7);
    const Finished asleep = run(no_ptrace + record + Words{"--idle", "--pid", std::to_string(waiting.pid())});
    INFO(asleep.out << asleep.err);
    CHECK(asleep.status == 0);
    CHECK(asleep.out.find(";by_upvalue ") != std::string::npos);
  }
}

TEST_CASE("a target executes another program while its memory is read through /proc", "[places]") {
  const Folder folder;
  const std::string other = folder.write("other.lua",
                                         "local function after() local x = 0 for i = 1, 1e6 do x = x + i % 7 end "
                                         "return x end\nwhile true do after() end\n");
  Running running({"/bin/sh", "-c", "read -r go; exec \"$@\"", "sh", parts().path("musl-static"), other});
  const Words record = {
      parts().path("luaspy"), "record", "--mode", "native", "-r", "200", "--every", "0.1", "-f", "folded", "-o",
      folder.path("profile"), "--pid"};
  Running luaspy(Words{parts().path("confine"), "process_vm_readv=EPERM", "--"} + record +
                 Words{std::to_string(running.pid())});
  luaspy.await("it records", [&] { return std::filesystem::exists(folder.path("profile")); });
  running.send("go\n");
  luaspy.await("it sees the new program",
               [&] { return read_file(folder.path("profile")).find("musl-static") != std::string::npos; });
}

TEST_CASE("luaspy opens no connection, harms no process and writes no file but the one that is named", "[places]") {
  const Words confine = {parts().path("confine")}, program = {parts().path("luaspy")};
  const Folder folder;
  Running running(spin(parts().path("musl-static")));
  running.read_until("READY");
  const Words pid = {"--pid", std::to_string(running.pid())};
  // The filters work.
  const int killed = 128 + SIGSYS;
  const std::string trace = "import ctypes; ctypes.CDLL(None).ptrace(4, 1, 0, 0)";  // PTRACE_POKETEXT
  CHECK(run(confine + Words{"harm", "--", "python3", "-c", trace}).status == killed);
  CHECK(run(confine + Words{"network", "--", "python3", "-c", "import socket; socket.socket(socket.AF_UNIX)"}).status ==
        killed);
  CHECK(run(confine + Words{"internet", "--", "python3", "-c", "import socket; socket.socket()"}).status == killed);
  CHECK(run(confine + Words{"writes", "--", "sh", "-c", "> " + folder.path("never")}).status == killed);
  CHECK(!std::filesystem::exists(folder.path("never")));

  // elfutils fetches debug information from a server if this variable is set.
  const Words debug_server = {"env", "DEBUGINFOD_URLS=http://127.0.0.1:9"};
  check_stack(run(debug_server + confine + Words{"network", "harm", "writes", "--"} + program +
                  Words{"dump", "--coroutines", "--locals"} + pid));
  for (const Words& command :
       {Words{"ps", "--states"}, Words{"top", "--batch", "--interval", "0.3", "--count", "1"} + pid}) {
    const Finished finished = run(debug_server + confine +
                                  Words{command[0] == "ps" ? "internet" : "network", "harm", "writes", "--"} + program +
                                  command);
    INFO(command[0] << finished.out << finished.err);
    CHECK(finished.status == 0);
    CHECK(finished.out.find(command[0] == "ps" ? "Lua 5.4." : "rest") != std::string::npos);
  }
  const Words in_folder = {"sh", "-c", "umask 027; cd \"$1\"; shift; exec \"$@\"", "sh", folder.path()},
              record = {"record", "-r", "200", "-d", "0.3", "-o", "named.folded"};
  const Finished recorded = run(debug_server + in_folder + confine + Words{"network", "harm", "--"} + program + record +
                                pid);
  INFO(recorded.err);
  CHECK(recorded.status == 0);
  struct stat status {};
  REQUIRE(::stat(folder.path("named.folded").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  REQUIRE(::stat(luaspy_program.c_str(), &status) == 0);
  CHECK((status.st_mode & (S_ISUID | S_ISGID)) == 0);
}

}  // namespace luaspy::live::places_test
