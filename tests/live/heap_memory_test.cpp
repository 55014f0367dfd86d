// luaspy on programs whose memory is unlike that of others: shared, of a sanitizer, mostly reserved, or more than
// may be copied in a standstill.
#include <fmt/format.h>
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "support/harness.h"

namespace luaspy::live::heap_memory_test {
namespace {

using nlohmann::json;

json heap_in_memory(pid_t pid, const Words& options = {}) {
  const Finished finished = luaspy(Words{"heap", "--json", "--pid", std::to_string(pid)} + options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return json::parse(finished.out);
}

bool is_in(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One Lua, with its main thread.
void check_doctor(pid_t pid) {
  const Finished doctor = luaspy({"doctor", "--pid", std::to_string(pid)});
  INFO(doctor.out << doctor.err);
  CHECK(doctor.status == 0);
  CHECK(is_in(doctor.out, "; cross-links hold\n"));
  CHECK(is_in(doctor.out, "fits at 1 (first "));
}

// How many states ps counts in the process: the column after the one of threads.
std::string states_in_ps(pid_t pid) {
  const Finished ps = luaspy({"ps", "--states", "--json"});
  INFO(ps.out << ps.err);
  REQUIRE(ps.status == 0);
  const json list = json::parse(ps.out);
  for (const json& process : list.at("processes")) {
    if (process.at("pid") == pid) return process.at("states").dump();
  }
  return "the process is not there";
}

}  // namespace

TEST_CASE("a Lua in shared memory is found as any other", "[heap][luas]") {
  const std::string version = GENERATE("5.1", "5.4");
  const Folder folder;
  const std::string kind = GENERATE("memfd", "anonymous", "some in a file");
  const std::string where = kind == "some in a file" ? "+" + folder.path("arena") : kind;
  INFO(version << " in " << where);
  Running running({compile(folder, "shared_memory", source_version(version)), where, workload("objects.lua"), "wait"});
  running.read_until("READY");
  for (const Words& options : {Words{}, Words{"--rss"}}) {
    const json heap = heap_in_memory(running.pid(), options);
    REQUIRE(heap.at("states").size() == 1);
    CHECK(heap.at("states")[0].at("complete") == true);
    CHECK(heap.at("states")[0].at("difference_bytes") == 0);
    CHECK(heap.at("copied_bytes") < 64 << 20);  // and nothing of what is only reserved
    if (options.empty()) continue;
    CAPTURE(heap.at("resident").dump(2));
    std::int64_t sum = 0;
    for (const json& part : heap.at("resident").at("parts")) sum += part.at("bytes").get<std::int64_t>();
    CHECK(sum == heap.at("resident").at("rss"));
    CHECK((heap.at("resident").at("notes").empty() || where.starts_with('+')));
  }
  const json seen = dump(running.pid(), {"--coroutines"});
  CHECK(seen.at("states").size() == 1);
  check_doctor(running.pid());
  CHECK(states_in_ps(running.pid()) == "1");
}

TEST_CASE("a program of a sanitizer stands still as briefly as another", "[heap][all]") {
  const std::string kind = GENERATE("asan", "tsan", "msan");
  INFO(kind);
  const Folder folder;
  const std::string script = folder.write("busy.lua",
                                          "local keep = {}\n"
                                          "for i = 1, 5000 do keep[i] = {id = i, name = 'n' .. i} end\n"
                                          "local function work() local t = {} for i = 1, 100 do t[i] = {i} end end\n"
                                          "io.write('READY\\n') io.flush()\n"
                                          "while true do work() end\n");
  Running running(sanitized(kind) + Words{script});
  running.read_until("READY");
  const json heap = heap_in_memory(running.pid());
  CHECK(heap.at("stood_still_ms") > 0);
  CHECK(heap.at("stood_still_ms") < 300);
  CHECK(heap.at("copied_bytes") < 64 << 20);
  REQUIRE(heap.at("states").size() == 1);
  CHECK(heap.at("states")[0].at("complete") == true);
  CHECK(states_in_ps(running.pid()) == "1");
  check_doctor(running.pid());
  const std::string file = folder.path("busy.folded");
  const Finished record = luaspy({"record", "--pid", std::to_string(running.pid()), "-d", "1", "-o", file});
  INFO(record.err);
  CHECK(record.status == 0);
  CHECK(is_in(read_file(file), "/busy.lua"));
  // It ends with its target.
  Running command(
      {luaspy_program, "heap", "--pid", std::to_string(running.pid()), "--every", "0.1", "--count", "1000"});
  REQUIRE(::kill(running.pid(), SIGKILL) == 0);
  CHECK(command.wait() != 0);
}

TEST_CASE("a standstill has a limit", "[heap][luas]") {
  const Folder folder;
  Running running({compile(folder, "c_heap", source_version("5.4")), "300", workload("objects.lua"), "work"});
  running.read_until("READY");
  const Words options = {"heap", "--rss", "--pid", std::to_string(running.pid()), "--max-still"};
  const Finished late = luaspy(options + Words{"1"});
  INFO(late.err);
  CHECK(late.status == 1);
  CHECK(late.out.empty());
  CHECK(is_in(late.err, " stood still for 1 ms, which is the limit, and "));
  CHECK(is_in(late.err, " It runs again, and nothing was kept. To let it stand still for longer: --max-still "));
  CHECK(running.alive());
  CHECK(luaspy(options + Words{"60000"}).status == 0);
  CHECK(luaspy({"heap", "--pid", std::to_string(running.pid()), "--max-still", "0"}).status == 2);
}

// Where a type is in the FFI's table depends on addresses: these are always the same ones.
TEST_CASE("callbacks of LuaJIT's FFI are counted", "[heap][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-luajit-bookworm", "debian-luajit-trixie", "debian-luajit-experimental",
                           "luajit-2.1.newest-gc32", "luajit-2.1.20170501-gc64", "debian-luajit2-bookworm"})));
  const std::string first = GENERATE("81", "197");
  INFO(name << " from " << first);
  Running running(Words{"setarch", "-R"} + lua({workload("luajit/ffi_callbacks.lua"), first}, name));
  running.read_until("READY");
  CHECK(heap_in_memory(running.pid()).at("states").at(0).at("difference_bytes") == 0);
}

// The collector shrinks the buffer for strings that are being made, whatever was used of it (lj_buf.c, lj_buf_shrink).
// The coroutine that used it last may be gone.
TEST_CASE("LuaJIT's buffer for strings is counted when it has shrunk below what was used of it", "[heap][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-luajit-bookworm", "debian-luajit-trixie", "debian-luajit-experimental",
                           "luajit-2.1.newest-gc32", "luajit-2.1.20170501-gc32", "debian-luajit2-bookworm"})));
  const std::string collections = GENERATE("2", "5", "12");
  const std::string by = GENERATE("main", "coroutine");
  INFO(name << ": " << collections << " collections, used by the " << by);
  Running running(lua({workload("luajit/string_buffer.lua"), collections, by}, name));
  running.read_until("READY");
  CHECK(heap_in_memory(running.pid()).at("states").at(0).at("difference_bytes") == 0);
}

// lj_tab.c, lj_tab_free: a table that is being freed is in no list any more, its parts are freed first, and its own
// bytes are still counted then.
TEST_CASE("of an object that is just being freed only its own bytes are missing", "[heap][all]") {
  Running running(lua({workload("objects.lua"), "work"}, "luajit-2.1.20220320-symbols"));
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid());
  // If lj_tab_free has called it: it has 170 bytes. gdb-minimal has no Python, and so no $_caller_is().
  const std::string where = "lj_alloc_free if *(unsigned long*)$rsp - (unsigned long)&lj_tab_free < 170";
  const Finished stopped = run({"gdb", "-q", "-batch", "-p", pid, "-ex", "break " + where, "-ex", "continue", "-ex",
                                "shell kill -STOP " + pid, "-ex", "detach"});
  INFO(stopped.out << stopped.err);
  REQUIRE(is_in(stopped.out, "Breakpoint 1, "));
  const json state = heap_in_memory(running.pid()).at("states").at(0);
  CHECK(state.at("complete") == true);
  constexpr std::int64_t table = 64, most_colocated = 16 * 8;  // bytes
  CHECK(state.at("difference_bytes") <= -table);
  CHECK(state.at("difference_bytes") >= -table - most_colocated);
  REQUIRE(::kill(running.pid(), SIGCONT) == 0);
}

}  // namespace luaspy::live::heap_memory_test
