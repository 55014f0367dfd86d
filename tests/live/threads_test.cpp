// Hosts that run Lua on several threads, in several states, or in other ways than the lua program.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>

#include "support/harness.h"

namespace luaspy::live::threads_test {
namespace {

constexpr int thread_count = 4;

// The thread of threads.c to which these frames belong; 0 if none, -1 if several.
int owner(const nlohmann::json& frames) {
  int owner = 0;
  for (const nlohmann::json& frame : frames) {
    if (frame.at("kind") != "lua" || frame.at("file") != "threads") continue;
    const int k = (frame.at("line_defined").get<int>() + 1) / 2;
    owner = owner == 0 || owner == k ? k : -1;
  }
  return owner;
}

// The innermost Lua frames of thread K: leaf_K, and the function that calls it. It may be between
// two calls of leaf_K.
void check_worker(const nlohmann::json& thread, int k) {
  std::vector<std::string> functions;
  for (const nlohmann::json& frame : thread.at("frames")) {
    if (frame.at("kind") == "lua")
      functions.push_back(
          fmt::format("{}:{}", frame.at("file").get<std::string>(), frame.at("line_defined").get<int>()));
    if (frame.at("kind") == "lua" && frame.at("line_defined") == 2 * k - 1)
      CHECK(frame.at("name") == fmt::format("leaf_{}", k));
  }
  const std::string leaf = fmt::format("threads:{}", 2 * k - 1), body = fmt::format("threads:{}", 2 * k);
  INFO(thread.dump(2));
  CHECK((functions == std::vector{leaf, body} || functions == std::vector{body}));
  CHECK(thread.at("native_complete") == true);
}

const Words versions = {"5.1",
                        "5.2",
                        "5.3",
                        "5.4",
                        "5.5",
                        "2.1.20170501-gc64",
                        "2.1.20220320-gc32",
                        "2.1.newest-gc64",
                        "2.1.tarantool2.6-gc32"};

bool is_luajit(const std::string& version) { return version.starts_with("2.1."); }

}  // namespace

TEST_CASE("each thread's own Lua function, of own and of shared states", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const std::string mode = GENERATE("own", "shared", "neighbours");
  const Folder folder;
  Running running({compile(folder, "threads", version), mode});
  running.read_until("READY");
  INFO(version << " " << mode);
  std::map<int, int> tids;  // by thread
  bool seen_leaf = false;
  const nlohmann::json dumped = dump(running.pid(), {"--count", "5", "--interval", "0.05"});
  REQUIRE(dumped.at("later").size() == 4);
  for (std::size_t i = 0; i < 5; ++i) {
    const nlohmann::json& json = i == 0 ? dumped : dumped.at("later")[i - 1];
    REQUIRE(json.at("threads").size() == thread_count + 1);
    std::set<int> owners;
    for (const nlohmann::json& thread : json.at("threads")) {
      const int k = owner(thread.at("frames"));
      INFO(thread.dump(2));
      REQUIRE(k >= 0);
      if (thread.at("tid") == running.pid()) {
        CHECK(k == 0);
        continue;
      }
      REQUIRE(k != 0);
      owners.insert(k);
      const int tid = thread.at("tid");
      CHECK(tids.emplace(k, tid).first->second == tid);
      check_worker(thread, k);
      seen_leaf |= thread.at("frames").dump().find("leaf_") != std::string::npos;
    }
    CHECK(owners == std::set{1, 2, 3, 4});
  }
  CHECK(seen_leaf);
}

TEST_CASE("a thread that is only seen asleep is left out beside others, and shown on demand", "[threads]") {
  const Folder folder;
  Running running({compile(folder, "threads", source_version("5.4")), "own"});
  running.read_until("READY");
  const std::string file = folder.path("idle.luaspy"), first = fmt::format(" ({})", running.pid());
  const Finished recorded = luaspy({"record", "--idle", "-d", "1", "-r", "100", "--max-stopped", "100", "-o", file,
                                    "--pid", std::to_string(running.pid())});
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  CHECK(std::regex_search(recorded.err,
                          std::regex("\n  1 of 5 threads was only seen asleep, at \\d+ ticks, and left out: "
                                     "--all-threads shows them\n  by thread: \\S+ ran \\d+\\.\\d %")));
  CHECK(recorded.err.find("--idle makes it one") == std::string::npos);
  const auto first_thread = [&](const Words& options) {
    const Finished folded = luaspy(Words{"report", file, "--threads", "-f", "folded", "-o", "-"} + options);
    std::int64_t samples = 0;
    for (const FoldedStack& stack : parse_folded(folded.out))
      samples += stack.frames.front().ends_with(first) ? stack.count : 0;
    return samples;
  };
  CHECK(first_thread({}) == 0);
  CHECK(first_thread({"--all-threads"}) >= 50);
  CHECK(first_thread({"--thread", std::to_string(running.pid())}) >= 50);  // there is no other
  const Finished by_thread = luaspy({"report", file, "--by-thread"});
  INFO(by_thread.out);
  CHECK(std::regex_search(by_thread.out, std::regex(" \\d+ \\S+: ran \\d+\\.\\d %, ")));
  CHECK(by_thread.out.find(fmt::format(" {} ", running.pid())) == std::string::npos);
}

TEST_CASE("record --threads gives every thread its own root", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const Folder folder;
  Running running({compile(folder, "threads", version), "own"});
  running.read_until("READY");
  const Finished recorded = luaspy({"record", "--threads", "-d", "1", "-r", "400", "--max-stopped", "100", "-f",
                                    "folded", "-o", "-", "--pid", std::to_string(running.pid())});
  INFO(recorded.err << recorded.out);
  REQUIRE(recorded.status == 0);
  std::map<std::string, std::set<int>> owners;  // by root frame
  std::map<std::string, std::int64_t> samples;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    REQUIRE(stack.frames.front().starts_with("thread "));
    samples[stack.frames.front()] += stack.count;
    for (const std::string& frame : stack.frames) {
      const std::size_t at = frame.find("(threads:");
      if (at != std::string::npos) owners[stack.frames.front()].insert((std::stoi(frame.substr(at + 9)) + 1) / 2);
    }
  }
  CHECK(owners.size() == thread_count);
  std::set<int> all;
  for (const auto& [root, functions] : owners) {
    INFO(root);
    CHECK(functions.size() == 1);
    CHECK(samples[root] >= 5);  // of 400, as the machine may be busy
    all.insert(functions.begin(), functions.end());
  }
  CHECK(all.size() == thread_count);
}

// The C library as it is installed, and without any symbols but those that it exports: Debian's clone3
// has none, and other functions only where a debug file is installed.
TEST_CASE("a thread's stack begins with its own function", "[threads][start_frames]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const bool stripped = GENERATE(false, true);
  const Folder folder;
  const std::string program = compile(folder, "threads", version);
  Words command = {program, "own"};
  if (stripped) {
    const std::string libc = run({"sh", "-c",
                                  "ldd \"$1\" | sed -n 's/.* => \\(.*libc\\.so\\.6\\) .*/\\1/p' | tr -d '\\n'", "sh",
                                  program})
                                 .out;
    REQUIRE(run({"objcopy", "--strip-all", "--remove-section=.note.gnu.build-id", "--remove-section=.gnu_debuglink",
                 libc, folder.path("libc.so.6")})
                .status == 0);
    command = Words{"/usr/bin/env", "LD_LIBRARY_PATH=" + folder.path()} + command;
  }
  Running running(command);
  running.read_until("READY");
  REQUIRE((read_file(fmt::format("/proc/{}/maps", running.pid())).find(folder.path("libc.so.6")) !=
           std::string::npos) == stripped);
  const Finished recorded = luaspy({"record", "-d", "1", "-r", "400", "--max-stopped", "100", "-f", "folded", "-o", "-",
                                    "--pid", std::to_string(running.pid())});
  INFO(recorded.err << recorded.out);
  REQUIRE(recorded.status == 0);
  std::int64_t threads = 0;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    const std::string& first = stack.frames.front();
    CHECK(first.find("start_thread") == std::string::npos);
    CHECK(!first.starts_with("libc.so"));
    threads += first.starts_with("main (") ? 0 : stack.count;
  }
  CHECK(threads > 20);
}

TEST_CASE("record of threads whose stacks lie side by side in one mapping", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const Folder folder;
  Running running({compile(folder, "threads", version), "neighbours"});
  for (const std::string& line : running.read_until("READY")) WARN(line);
  const Finished recorded = luaspy({"record", "-d", "1", "-r", "200", "--max-stopped", "100", "-f", "folded", "-o", "-",
                                    "--pid", std::to_string(running.pid())});
  INFO(version << "\n" << recorded.err << recorded.out);
  REQUIRE(recorded.status == 0);
  std::smatch complete;
  REQUIRE(std::regex_search(recorded.err, complete, std::regex("([0-9.]+) % reach")));
  CHECK(std::stod(complete[1]) >= 99.9);
  std::int64_t all = 0, with_lua = 0;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    all += stack.count;
    if (std::ranges::any_of(stack.frames,
                            [](const std::string& frame) { return frame.find("(threads:") != frame.npos; }))
      with_lua += stack.count;
  }
  CHECK(all > 20);
  CHECK(with_lua == all);
}

TEST_CASE("a state that runs another state on the same thread is one stack", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const Folder folder;
  Running running({compile(folder, "threads", version), "nested"});
  running.read_until("READY");
  const nlohmann::json json = dump(running.pid());
  INFO(version << "\n" << json.dump(2));
  REQUIRE(json.at("threads").size() == 2);
  for (const nlohmann::json& thread : json.at("threads")) {
    if (thread.at("tid") == running.pid()) continue;
    std::vector<std::string> stack;
    for (const nlohmann::json& frame : thread.at("frames")) {
      if (frame.at("kind") == "lua")
        stack.push_back(fmt::format("{}:{}", frame.at("file").get<std::string>(), frame.at("line_defined").get<int>()));
      if (frame.at("kind") == "c") stack.push_back(frame.at("name"));
      CHECK(frame.at("kind") != "marker");
    }
    if (!stack.empty() && stack.front() == "b:1") stack.erase(stack.begin());
    CHECK(stack == std::vector<std::string>{"b:2", "enter_b", "a:1", "a:2"});
    CHECK(thread.at("native_complete") == true);
  }
}

TEST_CASE("Lua called without protection, and coroutines that the host resumes itself", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const std::string mode = GENERATE("unprotected", "resume");
  const Folder folder;
  Running running({compile(folder, "threads", version), mode});
  running.read_until("READY");
  INFO(version << " " << mode);
  const nlohmann::json json = dump(running.pid());
  REQUIRE(json.at("threads").size() == 2);
  for (const nlohmann::json& thread : json.at("threads")) {
    if (thread.at("tid") != running.pid()) check_worker(thread, 1);
  }
}

TEST_CASE("a Lua that is linked in and not used", "[threads]") {
  const std::string version = source_version(GENERATE(from_range(versions)));
  const Folder folder;
  Running running({compile(folder, "threads", version), "none"});
  running.read_until("READY");
  const Finished dumped = luaspy({"dump", "--pid", std::to_string(running.pid())});
  INFO(version << "\n" << dumped.out << dumped.err);
  CHECK(dumped.status == 6);
  CHECK(dumped.err.find("not initialised yet") != std::string::npos);
  CHECK(dumped.err.find(is_luajit(version) ? "LuaJIT" : "Lua " + version.substr(0, 3)) != std::string::npos);
}

// There, no call frame information marks clone's assembly as the outermost frame.
TEST_CASE("threads of a static program without a table of its call frame information", "[threads][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(prepared({"5.1", "5.4", "2.1.newest-gc64"}))));
  const Folder folder;
  Running running({compile(folder, "threads", version, {"-static", "-no-pie", "-Wl,--no-eh-frame-hdr"}), "own"});
  running.read_until("READY");
  const nlohmann::json json = dump(running.pid());
  INFO(version << "\n" << json.dump(2));
  REQUIRE(json.at("threads").size() == thread_count + 1);
  for (const nlohmann::json& thread : json.at("threads")) {
    CHECK(thread.at("native_complete") == true);
    if (thread.at("tid") != running.pid()) check_worker(thread, owner(thread.at("frames")));
  }
}

TEST_CASE("a fiber's stack ends where its library began it", "[threads][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(prepared({"5.1", "5.4", "2.1.newest-gc64"}))));
  const Folder folder;
  Running running({compile(folder, "fiber", version)});
  running.read_until("READY");
  const nlohmann::json json = dump(running.pid());
  INFO(version << "\n" << json.dump(2));
  REQUIRE(json.at("threads").size() == 1);
  const nlohmann::json& thread = json.at("threads")[0];
  CHECK(thread.at("native_complete") == true);
  std::vector<std::string> natives;
  for (const nlohmann::json& frame : thread.at("frames")) {
    CHECK(frame.at("kind") != "marker");
    if (frame.at("kind") == "native") natives.push_back(frame.at("name"));
  }
  REQUIRE(!natives.empty());
  CHECK(natives.back() == "begin_fiber");
}

TEST_CASE("a process whose first thread has ended", "[threads][leader][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(prepared({"5.1", "5.4", "2.1.newest-gc64"}))));
  const Folder folder;
  Running running({compile(folder, "leader", version), "first"});
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid());
  for (const Words& options : {Words{}, Words{"--locals"}, Words{"--coroutines"}}) {
    const nlohmann::json json = dump(running.pid(), options);
    INFO(version << "\n" << json.dump(2));
    REQUIRE(json.at("threads").size() == 1);
    const nlohmann::json& thread = json.at("threads")[0];
    CHECK(thread.at("tid") != running.pid());
    CHECK(thread.at("native_complete") == true);
    CHECK(thread.at("frames").dump().find("\"body\"") != std::string::npos);
    CHECK(json.at("command").get<std::string>().ends_with("leader" + version + " first"));
  }
  const Finished recorded = luaspy(
      {"record", "-d", "1", "-r", "200", "--max-stopped", "100", "-f", "folded", "-o", "-", "--pid", pid});
  INFO(version << "\n" << recorded.err << recorded.out);
  CHECK(recorded.status == 0);
  CHECK(recorded.err.find("100.00 % reach") != std::string::npos);
  CHECK(recorded.out.find("body (worker:2)") != std::string::npos);
  const Finished top = luaspy(
      {"top", "--batch", "--interval", "0.8", "--count", "1", "--max-stopped", "100", "--pid", pid});
  INFO(top.err << top.out);
  CHECK(top.status == 0);
  CHECK(top.out.find("leaf (worker:1)") != std::string::npos);
  const Finished ps = luaspy({"ps", "--json", "--states"});
  INFO(ps.err << ps.out);
  CHECK(ps.out.find("\"pid\": " + pid) != std::string::npos);
}

TEST_CASE("the first thread ends while it is recorded", "[threads][leader][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(prepared({"5.4", "2.1.newest-gc64"}))));
  const Folder folder;
  Running running({compile(folder, "leader", version), "asked"});
  running.read_until("READY");
  const std::string task = "/proc/" + std::to_string(running.pid()) + "/task/";
  Running recorder(with_errors(folder.path("errors"),
                               {luaspy_program, "record", "-d", "3", "-r", "200", "--max-stopped", "100", "--threads",
                                "-f", "folded", "-o", folder.path("profile"), "--pid", std::to_string(running.pid())}));
  recorder.await("it has the threads' files open", [&] {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", recorder.pid()), error)) {
      if (std::filesystem::read_symlink(entry.path(), error).string().starts_with(task)) return true;
    }
    return false;
  });
  running.send("end\n");
  const int status = recorder.wait();
  const std::string errors = read_file(folder.path("errors")), profile = read_file(folder.path("profile"));
  INFO(version << "\n" << errors << profile);
  CHECK(status == 0);
  CHECK(errors.find("100.00 % reach") != std::string::npos);
  CHECK(profile.find("body (worker:2)") != std::string::npos);
  CHECK(running.alive());
  const nlohmann::json json = dump(running.pid());
  REQUIRE(json.at("threads").size() == 1);
  CHECK(json.at("threads")[0].at("native_complete") == true);
}

}  // namespace luaspy::live::threads_test
