// luaspy heap where luaspy may not have the memory that a heap takes: it says so before the target is
// stopped.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/harness.h"
#include "support/skip.h"

namespace luaspy::live::heap_room_test {
namespace {

constexpr const char* spinning = R"(
local keep = {}
for i = 1, 4e5 do keep[i] = {i, tostring(i)} end
print("READY") io.flush()
while true do end
)";

// A thread that only computes gives its CPU away of its own will when it is stopped, and only then
// (proc(5), voluntary_ctxt_switches).
std::int64_t stops_of(pid_t pid) {
  std::istringstream status(read_file(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) return std::stoll(line.substr(line.find(':') + 1));
  }
  return -1;
}

// luaspy heap, as it is and as user nobody, who can only see a target of his own.
struct Who {
  Words prefix;
  std::string luaspy;
};

std::vector<Who> everybody(const Folder& folder) {
  std::vector<Who> all = {{{"env"}, luaspy_program}};
  if (::geteuid() != 0) return all;
  std::filesystem::copy_file(luaspy_program, folder.path("luaspy"));
  REQUIRE(::chmod(folder.path("luaspy").c_str(), 0755) == 0);
  all.push_back({{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--no-new-privs"},
                 folder.path("luaspy")});
  return all;
}

void check_refused(const Finished& finished) {
  INFO(finished.err);
  CHECK(finished.status == 1);
  CHECK(finished.out.empty());
  CHECK(finished.err.find("luaspy: A copy of the heap and its analysis need some ") == 0);
  CHECK(finished.err.ends_with(" MB. The process was not stopped.\n"));
  CHECK(std::ranges::count(finished.err, '\n') == 1);
}

// A control group with a limit of memory, of version 1 or 2; removed with the object.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::uint64_t bytes) {
    const std::string name = fmt::format("/luaspy-test-{}", ::getpid());
    const struct {
      std::string parent;
      const char* file;
    } places[] = {{"/sys/fs/cgroup", "memory.max"},
                  {"/sys/fs/cgroup/memory" + own_of_version_1(), "memory.limit_in_bytes"}};
    for (const auto& [parent, file] : places) {
      if (::mkdir((parent + name).c_str(), 0755) != 0) continue;
      path_ = parent + name;
      usable_ = std::filesystem::exists(path_ + "/" + file) &&
                static_cast<bool>(std::ofstream(path_ + "/" + file) << bytes << std::flush);
      if (usable_) return;
      ::rmdir(path_.c_str());
    }
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;
  ~LimitedGroup() {
    if (usable_) ::rmdir(path_.c_str());
  }
  bool usable() const { return usable_; }
  Words starting(const Words& command) const {
    return Words{"sh", "-c", "echo $$ > " + path_ + "/cgroup.procs && exec \"$@\"", "sh"} + command;
  }

 private:
  static std::string own_of_version_1() {
    std::istringstream groups(read_file("/proc/self/cgroup"));
    for (std::string line; std::getline(groups, line);) {
      if (const std::size_t at = line.find(":memory:"); at != std::string::npos) return line.substr(at + 8);
    }
    return "";
  }

  std::string path_;
  bool usable_ = false;
};

}  // namespace

TEST_CASE("a heap that does not fit is refused before anything is stopped", "[heap_room]") {
  const std::string name = GENERATE(as<std::string>(), lua54, luajit);
  INFO(name);
  const Folder folder;
  for (const Who& who : everybody(folder)) {
    INFO(who.prefix.front());
    // setpriv itself executes the program: others may not search the folder of the checkout.
    Words command = lua({folder.write("spinning.lua", spinning)}, name);
    const auto executable = std::ranges::find(command, target(name).command.back());
    REQUIRE(executable != command.end());
    command.insert(executable, who.prefix.begin(), who.prefix.end());
    Running running(command);
    running.read_until("READY");
    const pid_t pid = running.pid();
    const auto heap = [&](int limit_mb) {
      return run(who.prefix + Words{"prlimit", fmt::format("--as={}000000", limit_mb), who.luaspy, "heap", "--pid",
                                    std::to_string(pid)});
    };
    // It either fits, or is refused.
    bool refused = false, fitted = false;
    for (const int limit_mb : {60, 90, 120, 150, 180, 210, 240, 270, 300, 600}) {
      INFO(limit_mb << " MB");
      const std::int64_t stops = stops_of(pid);
      const Finished finished = heap(limit_mb);
      if (finished.status == 0) {
        fitted = true;
        CHECK(stops_of(pid) > stops);
      } else {
        refused = true;
        CHECK_FALSE(fitted);
        check_refused(finished);
        CHECK(stops_of(pid) == stops);
      }
    }
    CHECK(refused);
    CHECK(fitted);
  }
}

TEST_CASE("the limit of a control group counts", "[heap_room]") {
  constexpr std::uint64_t limit = 80'000'000;
  const LimitedGroup group(limit);
  if (!group.usable()) {
    REQUIRE(::geteuid() != 0);
    return test::skip("this user cannot have a control group with a limit of memory; root can");
  }
  const Folder folder;
  Running running(lua({folder.write("spinning.lua", spinning)}));
  running.read_until("READY");
  const std::int64_t stops = stops_of(running.pid());
  check_refused(run(group.starting({luaspy_program, "heap", "--pid", std::to_string(running.pid())})));
  CHECK(stops_of(running.pid()) == stops);
  CHECK(luaspy({"heap", "--pid", std::to_string(running.pid())}).status == 0);
  CHECK(stops_of(running.pid()) > stops);
}

}  // namespace luaspy::live::heap_room_test
