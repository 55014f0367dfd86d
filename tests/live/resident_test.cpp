// Where the resident memory of a process is: the parts must add up to what the kernel counts, and
// each must be what the program's own allocator says of itself.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "attach/live_memory.h"
#include "attach/process.h"
#include "attach/read_resident_memory.h"
#include "heap/c_heap.h"
#include "heap/resident.h"
#include "heap/thread_stacks.h"
#include "heapreport/heap_text.h"
#include "luastate/locate.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luas.h"
#include "support/harness.h"

namespace luaspy::live::live_resident_test {
namespace {

std::vector<std::uint64_t> numbers(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::uint64_t> all;
  for (std::uint64_t number = 0; words >> number;) all.push_back(number);
  return all;
}

// After READY it may still be on the way to the system call in which it waits.
void await_sleep(Running& running) {
  Result<Process> process = Process::open(running.pid());
  REQUIRE(process);
  running.await("all threads sleep", [&] {
    process->forget_threads();
    return std::ranges::all_of(process->threads(), [](const std::shared_ptr<Thread>& thread) {
      const ThreadState state = thread->state();
      return state.kind == ThreadState::Kind::sleeping && state.system_call >= 0;
    });
  });
}

// The sum that the kernel makes itself.
std::uint64_t kernels_rss(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string word; file >> word;) {
    std::uint64_t kb = 0;
    if (word == "Rss:" && file >> kb) return kb * 1024;
  }
  return 0;
}

// Of a process that sleeps, all of this is of one moment.
struct Look {
  explicit Look(pid_t pid) : memory(pid) {
    Result<ResidentMemory> read = read_resident_memory(pid);
    REQUIRE(read);
    resident = std::move(*read);
    rss = kernels_rss(pid);
    Result<Process> process = Process::open(pid);
    REQUIRE(process);
    for (const std::shared_ptr<Thread>& thread : process->threads()) {
      if (const ThreadState state = thread->state(); state.sp != 0) stack_pointers.push_back(state.sp);
    }
  }

  // As many live bytes as the collector counts. The test has no walk of the objects.
  std::vector<LuaUse> uses() const {
    Locator locator(own_machine());
    locator.try_layouts(all_layouts());
    const AddressSpace space = resident.address_space();
    locator.set_space(space);
    locator.find_states(memory, space, Locator::most_searched);
    std::vector<LuaUse> all;
    for (const auto& [G, lua] : locator.global_states())
      all.push_back({lua, G, static_cast<std::uint64_t>(lua->collector(memory, G).bytes), 0, 0});
    return all;
  }

  LiveMemory memory;
  ResidentMemory resident;
  std::uint64_t rss = 0;  // at that time: reading memory may make pages of files resident
  std::vector<Address> stack_pointers;
};

void check_sum(const ResidentReport& report, const Look& look) {
  INFO(to_text(report, Paint(false)));
  CHECK(report.rss == look.rss);
  CHECK(std::accumulate(std::begin(report.parts), std::end(report.parts), std::uint64_t{0}) == report.rss);
}

// With the libc of a Debian suite: that of the machine for bookworm.
Words with_libc(const std::string& target_name, const std::string& program) {
  Words command = target(target_name).command;
  command.back() = program;
  return command;
}

// What the lists of free chunks of a LuaJIT's allocator add up to: malloc_state of lj_alloc.c.
std::uint64_t bytes_in_bins(const Memory& memory, Address state) {
  const auto word = [&](Address address) { return memory.get<std::uint64_t>(address).value_or(0); };
  const auto size = [&](Address chunk) { return word(chunk + 8) & ~std::uint64_t{3}; };
  std::uint64_t bytes = word(state + 8) + word(state + 16);  // dvsize, topsize
  const std::uint64_t maps = word(state);
  for (std::size_t i = 0; i < 32; ++i) {
    const Address bin = state + 56 + 16 * i;
    for (Address chunk = word(bin + 16); (maps >> i & 1) != 0 && chunk != bin; chunk = word(chunk + 16))
      bytes += size(chunk);
    std::vector<Address> nodes;
    if ((maps >> (32 + i) & 1) != 0) nodes.push_back(word(state + 584 + 8 * i));
    while (!nodes.empty()) {
      const Address node = nodes.back();
      nodes.pop_back();
      bytes += size(node);
      for (Address chunk = word(node + 16); chunk != node; chunk = word(chunk + 16)) bytes += size(chunk);
      for (const Address child : {Address{32}, Address{40}}) {
        if (word(node + child) != 0) nodes.push_back(word(node + child));
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("the C heap is what malloc says of itself", "[resident][luas]") {
  const Folder folder;
  const std::string program = compile(folder, "mallocs");
  const std::string libc_of = GENERATE_COPY(from_range(
      prepared({"debian-lua5.4-bookworm", "debian-lua5.4-trixie", "debian-lua5.4-sid", "debian-luajit-experimental"})));
  // With four rounds a thread fills the first heap of its arena, of 64 MiB.
  const auto [threads, rounds] = GENERATE(std::pair<std::size_t, int>(0, 1), std::pair<std::size_t, int>(3, 1),
                                          std::pair<std::size_t, int>(1, 4));
  Running running(with_libc(libc_of, program) + Words{std::to_string(threads), std::to_string(rounds)});
  const std::vector<std::uint64_t> said = numbers(running.read_until("READY").back());
  REQUIRE(said.size() == 7);
  await_sleep(running);
  const Look look(running.pid());
  const CHeap heap = read_c_heap(look.memory, look.resident, {});
  INFO(libc_of << ", " << threads << " more threads, " << rounds
               << " rounds: " << fmt::format("{}", fmt::join(heap.doubts, " ")));
  CHECK(heap.found);
  CHECK(heap.doubts.empty());
  CHECK(heap.arenas == threads + 1);
  // mallinfo2(3): arena, hblks, hblkhd, fsmblks, uordblks, fordblks. Caches count as in use there.
  CHECK(total_bytes(heap.areas) - heap.mapped_bytes == said[0]);
  CHECK(heap.mapped_chunks == said[1]);
  CHECK(heap.mapped_bytes == said[2]);
  CHECK(heap.fastbin_bytes == said[3]);
  CHECK(heap.bytes_in_use() - heap.mapped_bytes + heap.cached_bytes == said[4]);
  CHECK(heap.free_bytes() - heap.cached_bytes == said[5]);
  CHECK(heap.cached_bytes >= said[6]);
  CHECK(total_bytes(heap.unknown) == 0);

  CHECK(total_bytes(look.resident.pages) == look.resident.rss());
  const std::vector<AddressRange> stacks = find_thread_stacks(look.memory, look.resident, {}, heap.areas);
  CHECK(look.stack_pointers.size() == threads + 1);
  for (const Address sp : look.stack_pointers) CHECK(find_range(stacks, sp) != nullptr);

  const ResidentReport report = explain_resident(look.memory, look.resident, {}, look.stack_pointers);
  check_sum(report, look);
  CHECK(report.notes.empty());
  CHECK(report[ResidentKind::c_free] == look.resident.resident_bytes(heap.free));
  CHECK(report[ResidentKind::c_free] + report[ResidentKind::c_in_use] == look.resident.resident_bytes(heap.areas));
  // Most of what is mapped alone was never written.
  CHECK(report[ResidentKind::c_in_use] + heap.mapped_bytes / 2 < heap.bytes_in_use());
  CHECK(report[ResidentKind::thread_stacks] >= (threads + 1) * 4096);
  CHECK(report[ResidentKind::files] > 100'000);
  CHECK(report.files_written > 4096);
  CHECK(report.files_written < report[ResidentKind::files] / 2);
  CHECK(report[ResidentKind::rest] < 200'000);
  CHECK(report.c_heap == fmt::format("glibc's malloc, {} arena{}", threads + 1, threads == 0 ? "" : "s"));
}

TEST_CASE("LuaJIT's allocator is walked", "[resident][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-luajit-bookworm", "debian-luajit-trixie", "debian-luajit-sid",
                           "debian-luajit-experimental", "debian-texluajit-jit-bookworm", "luajit-2.0.20260330-gc32",
                           "luajit-2.1.20170501-gc64", "luajit-2.1.20170501-gc32", "luajit-2.1.newest-gc32",
                           "luajit-2.1.tarantool2.6-gc64", "luajit-2.1.newest-static-pie"})));
  Running running(target(name).command + Words{workload("memory.lua")});
  const std::vector<std::string> said = running.read_until("READY");
  REQUIRE(said.size() == 3);
  await_sleep(running);
  const Look look(running.pid());
  const std::vector<LuaUse> uses = look.uses();
  INFO(name);
  REQUIRE(uses.size() == 1);
  const LuaUse use = uses[0];
  const std::optional<AllocatorMemory> own = use.lua->allocator(look.memory, look.resident.address_space(), use.G);
  REQUIRE(own);
  CHECK(own->whole);
  const LuajitLayout* const layout = luajit_layout(*use.lua);
  REQUIRE(layout != nullptr);
  CHECK(own->free_bytes() ==
        bytes_in_bins(look.memory, look.memory.get<Address>(use.G + layout->G_gc - 8).value_or(0)));
  const SharedLuaMemory shared = use.lua->shared_memory(look.memory, look.resident, own->segments);
  // A chunk has a header of 8 bytes and is rounded up to 8; that is some 60,000 chunks here.
  const std::uint64_t in_use = own->bytes_in_use() + total_bytes(shared.mapped_chunks);
  CHECK(in_use > use.live);
  CHECK(in_use < use.live + 60'000 * 16);
  CHECK(total_bytes(shared.mapped_chunks) >= 200'000 * 8);  // the big array
  CHECK(shared.machine_code.empty() == (said[2] == "false"));

  const ResidentReport report = explain_resident(look.memory, look.resident, uses, look.stack_pointers);
  check_sum(report, look);
  CHECK(report.notes.empty());
  CHECK(report[ResidentKind::lua_live] == use.live);
  CHECK(report[ResidentKind::luajit_free] <= own->free_bytes());
  CHECK(report[ResidentKind::luajit_free] + 200'000 > own->free_bytes());  // nearly all of it was used before
  CHECK((report[ResidentKind::machine_code] != 0) == (said[2] == "true"));
  CHECK(report[ResidentKind::rest] < 300'000);
}

TEST_CASE("Lua's objects are part of the C heap", "[resident][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.3-bookworm", "debian-lua5.4-bookworm",
                           "debian-lua5.4-trixie", "debian-lua5.5-sid"})));
  Running running(target(name).command + Words{workload("memory.lua")});
  const std::vector<std::string> said = running.read_until("READY");
  REQUIRE(said.size() == 3);
  await_sleep(running);
  const Look look(running.pid());
  std::vector<LuaUse> uses = look.uses();
  REQUIRE(uses.size() == 1);
  CHECK_FALSE(uses[0].lua->allocator(look.memory, look.resident.address_space(), uses[0].G));
  const ResidentReport report = explain_resident(look.memory, look.resident, uses, look.stack_pointers);
  INFO(name);
  check_sum(report, look);
  CHECK(report.notes.empty());
  CHECK(report[ResidentKind::lua_live] == uses[0].live);
  const auto freed = static_cast<std::uint64_t>(std::stod(said[0]) - std::stod(said[1]));
  // What was mapped alone was given back: the two arrays of 100,000, and of the big one what it has
  // outgrown.
  CHECK(report[ResidentKind::c_free] > freed / 2);
  CHECK(report[ResidentKind::c_in_use] < uses[0].live / 3);
  CHECK(report[ResidentKind::rest] < 200'000);

  // More than there is: the parts still add up, and it is said.
  uses[0].dead = 1'000'000'000;
  const ResidentReport too_much = explain_resident(look.memory, look.resident, uses, look.stack_pointers);
  check_sum(too_much, look);
  CHECK(too_much[ResidentKind::lua_live] == uses[0].live);
  CHECK(too_much[ResidentKind::c_in_use] == 0);
  REQUIRE(too_much.notes.size() == 1);
  CHECK(too_much.notes[0].find("MiB of Lua objects are not resident in the C heap") != std::string::npos);
}

// lj_api.c, lua_newstate: with 64-bit references LuaJIT takes any allocator.
TEST_CASE("each state's objects are where its allocator has them", "[resident][all]") {
  const bool is_luajit = GENERATE(true, false);
  const Folder folder;
  Running running({compile(folder, "allocator", source_version(is_luajit ? "2.1.newest-gc64" : "5.4"))});
  running.read_until("READY");
  await_sleep(running);
  const Look look(running.pid());
  const std::vector<LuaUse> uses = look.uses();
  REQUIRE(uses.size() == 2);
  std::uint64_t of_own = 0, all = 0;
  for (const LuaUse& use : uses) {
    all += use.live;
    const auto own = use.lua->allocator(look.memory, look.resident.address_space(), use.G);
    if (!own) continue;
    CHECK(own->whole);
    of_own += own->bytes_in_use();
  }
  const ResidentReport report = explain_resident(look.memory, look.resident, uses, look.stack_pointers);
  check_sum(report, look);
  CHECK(report.notes.empty());
  CHECK(report[ResidentKind::lua_live] == all);
  CHECK((of_own != 0) == is_luajit);
  const CHeap heap = read_c_heap(look.memory, look.resident, {});
  const std::uint64_t in_c_heap = is_luajit ? all / 2 : all;
  CHECK(heap.bytes_in_use() > in_c_heap);
  CHECK(heap.bytes_in_use() < in_c_heap * 3 / 2);
  CHECK(report[ResidentKind::c_in_use] < in_c_heap / 2);
}

// states.c: five states, each with an allocator of its own.
TEST_CASE("several states of LuaJIT have an allocator each", "[resident][all]") {
  const Folder folder;
  Running running(
      {compile(folder, "states", source_version(GENERATE("2.1.20170501-gc32", "2.1.newest-gc64", "2.1.newest-gc32")))});
  running.read_until("READY");
  await_sleep(running);
  const Look look(running.pid());
  const std::vector<LuaUse> uses = look.uses();
  REQUIRE(uses.size() == 5);
  std::vector<AddressRange> segments;
  std::uint64_t segment_bytes = 0;
  for (const LuaUse& use : uses) {
    const auto own = use.lua->allocator(look.memory, look.resident.address_space(), use.G);
    REQUIRE(own);
    CHECK(own->whole);
    CHECK(own->bytes_in_use() > use.live);
    segments.insert(segments.end(), own->segments.begin(), own->segments.end());
    segment_bytes += total_bytes(own->segments);
  }
  CHECK(sort_and_join(segments) == 0);
  CHECK(total_bytes(segments) == segment_bytes);
  const ResidentReport report = explain_resident(look.memory, look.resident, uses, look.stack_pointers);
  check_sum(report, look);
  CHECK(report.notes.empty());
}

TEST_CASE("a malloc that is not glibc's is said", "[resident]") {
  const Folder folder;
  Running running(host("redis") +
                  Words{"--port", "0", "--save", "", "--unixsocket", folder.path("socket"), "--dir", folder.path()});
  const std::string socket = folder.path("socket");
  running.await("redis listens", [&] { return ::access(socket.c_str(), F_OK) == 0; });
  await_sleep(running);
  const Look look(running.pid());
  const ResidentReport report = explain_resident(look.memory, look.resident, look.uses(), look.stack_pointers);
  INFO(to_text(report, Paint(false)));
  CHECK(std::accumulate(std::begin(report.parts), std::end(report.parts), std::uint64_t{0}) == report.rss);
  CHECK(report.c_heap == "not glibc's malloc: what it has is in the rest");
  CHECK(report[ResidentKind::c_in_use] + report[ResidentKind::c_free] == 0);
  CHECK(report[ResidentKind::lua_live] > 20'000);
  CHECK(report[ResidentKind::rest] > 500'000);
}

// What is read changes meanwhile. The parts add up to what was resident at the beginning.
TEST_CASE("parts add up while a program allocates", "[resident]") {
  const std::string name = GENERATE("debian-lua5.4-bookworm", "debian-luajit-bookworm");
  Running running(target(name).command + Words{workload("collector.lua"), "60"});
  running.read_until("READY");
  INFO(name);
  for (int i = 0; i < 20; ++i) {
    const Look look(running.pid());
    const ResidentReport report = explain_resident(look.memory, look.resident, look.uses(), look.stack_pointers);
    CHECK(report.rss == look.resident.rss());
    CHECK(std::accumulate(std::begin(report.parts), std::end(report.parts), std::uint64_t{0}) == report.rss);
    CHECK(report[ResidentKind::files] > 100'000);
  }
}

TEST_CASE("resident memory is read as a user, and a refusal is explained", "[resident]") {
  const bool root = ::geteuid() == 0;
  const Folder folder;
  const std::string program = compile(folder, "mallocs");
  const Words as_user = root ? Words{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"} : Words{};
  Running own(as_user + Words{program}), others(Words{program});
  own.read_until("READY"), others.read_until("READY");
  await_sleep(own);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (root && (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) ::_exit(2);
    const Result<ResidentMemory> read = read_resident_memory(own.pid());
    if (!read || total_bytes(read->pages) != read->rss()) ::_exit(3);
    const CHeap heap = read_c_heap(LiveMemory(own.pid()), *read, {});
    if (!heap.found || !heap.doubts.empty()) ::_exit(4);
    if (root) {
      const Result<ResidentMemory> refused = read_resident_memory(others.pid());
      if (refused || refused.error().cause != Cause::permission) ::_exit(5);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a process that has ended has no resident memory", "[resident]") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  const Result<ResidentMemory> zombie = read_resident_memory(child);
  REQUIRE_FALSE(zombie);
  CHECK(zombie.error().cause == Cause::no_such_process);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const Result<ResidentMemory> gone = read_resident_memory(child);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().cause == Cause::no_such_process);
}

}  // namespace luaspy::live::live_resident_test
