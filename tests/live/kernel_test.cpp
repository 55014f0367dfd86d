// Frames of the kernel: as large a share as the process's own system time says, with names, nobody else's.

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "attach/kernel_log.h"
#include "attach/process.h"
#include "sampling/kernel_access.h"
#include "support/harness.h"
#include "support/skip.h"

namespace luaspy::live::kernel_test {
namespace {

// Reads 4 MiB of zeros with one system call, then computes for about as long as its argument says.
const char* const reading =
    "local n = tonumber(arg[1])\n"
    "local f = assert(io.open('/dev/zero', 'rb'))\n"
    "f:setvbuf('no')\n"
    "local function get() return f:read(262144) end\n"
    "local function add() local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
    "print('READY') io.flush()\n"
    "while true do get() add() end\n";
// Memory that is fresh each time: page faults.
const char* const faulting =
    "local function fresh() return #string.rep('x', 4000000) end\n"
    "print('READY') io.flush()\n"
    "while true do fresh() collectgarbage() end\n";
const char* const computing =
    "local function add() local s = 0 for i = 1, 1000 do s = s + i % 7 end return s end\n"
    "print('READY') io.flush()\n"
    "while true do add() end\n";

bool is_kernel(const std::string& frame) {
  return frame.ends_with("]") && frame.find(" [") != std::string::npos && !frame.ends_with(" [C]");
}

struct Shares {
  std::int64_t samples = 0;
  double kernel = 0, truth = 0;        // % of the samples; of the process's CPU time meanwhile
  std::map<std::string, double> each;  // frames of the kernel: % of the samples that have them
  std::vector<FoldedStack> stacks;

  std::string text() const {
    std::string text;
    for (const auto& [frame, share] : each) text += fmt::format("{:.1f} {}\n", share, frame);
    return text;
  }
  double of(const std::string& frame) const { return each.contains(frame) ? each.at(frame) : 0; }
};

void count(const std::string& folded, Shares& shares) {
  for (FoldedStack& stack : parse_folded(folded)) {
    shares.samples += stack.count;
    std::set<std::string> kernel;
    std::ranges::copy_if(stack.frames, std::inserter(kernel, kernel.end()), is_kernel);
    for (const std::string& frame : kernel) shares.each[frame] += static_cast<double>(stack.count);
    if (!kernel.empty()) shares.kernel += static_cast<double>(stack.count);
    shares.stacks.push_back(std::move(stack));
  }
}

// On a busy machine the target gets little CPU time: then it is recorded again.
Shares record_kernel(const Running& target, const Words& more = {}) {
  constexpr std::int64_t enough = 400;  // samples
  constexpr int most_runs = 6;
  const auto before = cpu_time_of(target.pid());
  REQUIRE(before);
  Shares shares;
  for (int i = 0; i < most_runs && shares.samples < enough; ++i) {
    const Finished finished = luaspy(Words{"record", "--kernel", "-r", "500", "-d", "3", "-f", "folded", "-o", "-",
                                           "--pid", std::to_string(target.pid())} +
                                     more);
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    count(finished.out, shares);
  }
  const auto after = cpu_time_of(target.pid());
  REQUIRE(after);
  const double all = static_cast<double>(shares.samples);
  for (auto& [frame, share] : shares.each) share *= 100 / all;
  shares.kernel *= 100 / all;
  const double system = static_cast<double>(after->system_ns - before->system_ns),
               user = static_cast<double>(after->user_ns - before->user_ns);
  shares.truth = 100 * system / (system + user);
  return shares;
}

// Whether the kernel lets luaspy record it here; names it if it does not.
bool may_record() {
  system::Failure failure;
  if (KernelLog::open(::sched_getcpu(), failure) != nullptr) return true;
  test::skip("kernel.perf_event_paranoid does not allow to record the kernel");
  return false;
}

}  // namespace

TEST_CASE("the kernel has as many samples as the process has system time", "[kernel]") {
  if (!may_record()) return;
  const Folder folder;
  const std::string script = folder.write("reading.lua", reading);
  for (const bool is_mostly_reading : {true, false}) {
    const char* const amount = is_mostly_reading ? "1000" : "20000";
    Running target(lua({script, amount}));
    target.read_until("READY");
    const Shares shares = record_kernel(target);
    CAPTURE(amount, shares.samples, shares.kernel, shares.truth, shares.text());
    REQUIRE(shares.samples > 200);
    // Both are counted at ticks: a deviation of 1 to 2 percentage points each.
    CHECK(std::abs(shares.kernel - shares.truth) < 9);
    // The rest are interrupts and switches, which come however little the program reads, most of them on a busy
    // machine.
    CHECK(shares.of("read [kernel]") > (is_mostly_reading ? 0.5 : 0.1) * shares.kernel);
    for (const FoldedStack& stack : shares.stacks) {
      const auto inner = std::ranges::find_if(stack.frames, is_kernel);
      if (inner == stack.frames.end()) continue;
      CHECK(std::all_of(inner, stack.frames.end(), is_kernel));  // innermost
      if (*inner != "read [kernel]") continue;
      CHECK(std::ranges::any_of(stack.frames, [](const auto& frame) { return frame.starts_with("get ("); }));
      CHECK(!std::ranges::any_of(stack.frames, [](const auto& frame) { return frame.starts_with("do_syscall_64 ["); }));
    }
  }
}

TEST_CASE("threads that are stopped with ptrace have the same frames of the kernel", "[kernel]") {
  if (!may_record()) return;
  const Folder folder;
  Running target(lua({folder.write("reading.lua", reading), "1000"}));
  target.read_until("READY");
  const Shares shares = record_kernel(target, {"--always-stop"});
  CAPTURE(shares.samples, shares.kernel, shares.truth, shares.text());
  REQUIRE(shares.samples > 200);
  CHECK(std::abs(shares.kernel - shares.truth) < 9);
  CHECK(shares.of("read [kernel]") > 0.7 * shares.kernel);
}

TEST_CASE("page faults are below the function that touches the memory", "[kernel]") {
  if (!may_record()) return;
  const Folder folder;
  Running target(lua({folder.write("faulting.lua", faulting)}));
  target.read_until("READY");
  const Shares shares = record_kernel(target, {"--mode", "all"});
  CAPTURE(shares.samples, shares.kernel, shares.truth, shares.text());
  REQUIRE(shares.samples > 200);
  CHECK(std::abs(shares.kernel - shares.truth) < 9);
  CHECK(shares.of("page_fault [kernel]") > 5);
  CHECK(shares.of("asm_exc_page_fault [kernel]") > 5);  // --mode all
}

TEST_CASE("a program that only computes has next to nothing of the kernel, whatever others do", "[kernel]") {
  if (!may_record()) return;
  const Folder folder;
  Running other(lua({folder.write("reading.lua", reading), "1"})), target(lua({folder.write("add.lua", computing)}));
  other.read_until("READY");
  target.read_until("READY");
  const Shares shares = record_kernel(target);
  CAPTURE(shares.samples, shares.kernel, shares.truth, shares.text());
  REQUIRE(shares.samples > 200);
  CHECK(shares.kernel < shares.truth + 3);
  CHECK(!shares.each.contains("read [kernel]"));
}

TEST_CASE("without --kernel nothing of the kernel is shown", "[kernel]") {
  const Folder folder;
  Running target(lua({folder.write("reading.lua", reading), "1000"}));
  target.read_until("READY");
  const Finished finished = luaspy(
      {"record", "-d", "1", "-f", "folded", "-o", "-", "--pid", std::to_string(target.pid())});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  for (const FoldedStack& stack : parse_folded(finished.out)) CHECK(!std::ranges::any_of(stack.frames, is_kernel));
}

TEST_CASE("sleeping threads show where they wait in the kernel, in dump always", "[kernel]") {
  if (kernel_for_sleeping() == nullptr) return test::skip("only root may read /proc/PID/stack");
  const Folder folder;
  Running target(lua({folder.write("waiting.lua", "print('READY') io.flush() io.read()")}));
  target.read_until("READY");
  target.await("it reads",
               [&] { return Thread(target.pid(), target.pid()).state().kind == ThreadState::Kind::sleeping; });
  const nlohmann::json frames = dump(target.pid()).at("threads").at(0).at("frames");
  INFO(frames.dump(1));
  REQUIRE(frames.size() > 3);
  CHECK(frames.at(0).at("name") == "[read]");  // what it waits for is the innermost
  CHECK(frames.at(1).at("kind") == "kernel");
  const auto call = std::ranges::find_if(frames, [](const auto& frame) { return frame.at("name") == "read"; });
  REQUIRE(call != frames.end());
  CHECK(call->at("kind") == "kernel");
  CHECK(call->at("file") == "[kernel]");
  const Finished text = luaspy({"dump", std::to_string(target.pid())});
  INFO(text.out);
  CHECK(text.out.find("\n    read [kernel]\n") != std::string::npos);
  const Shares asleep = record_kernel(target, {"--idle"});
  CHECK(asleep.of("read [kernel]") > 95);
}

TEST_CASE("top shows the kernel's functions", "[kernel]") {
  if (!may_record()) return;
  const Folder folder;
  Running target(lua({folder.write("reading.lua", reading), "1000"}));
  target.read_until("READY");
  const Finished finished = luaspy(
      {"top", "--kernel", "--batch", "--count", "1", "-r", "500", "--pid", std::to_string(target.pid())});
  INFO(finished.err);
  INFO(finished.out);
  CHECK(finished.status == 0);
  CHECK(finished.out.find("read [kernel]") != std::string::npos);
}

TEST_CASE("who may not see the kernel is told why, and gets the rest", "[kernel]") {
  const Folder folder;
  std::filesystem::copy_file(luaspy_program, folder.path("luaspy"));
  REQUIRE(::chmod(folder.path("luaspy").c_str(), 0755) == 0);
  const Words as_user = ::geteuid() == 0 ? Words{"setpriv",        "--reuid=65534",   "--regid=65534",
                                                 "--clear-groups", "--inh-caps=-all", "--no-new-privs"}
                                         : Words{"env"};
  const std::string paranoid = read_file("/proc/sys/kernel/perf_event_paranoid");
  if (paranoid.empty() || std::stoi(paranoid) < 1) return test::skip("everybody may see the kernel here");
  const Finished finished = run(
      as_user +
      Words{folder.path("luaspy"), "record", "--kernel", "--idle", "-d", "1", "-f", "folded", "-o", "-", "--"} +
      lua_for_all(folder, {folder.write("add.lua", "local t = os.clock() while os.clock() < t + 0.4 do end")}));
  INFO(finished.err);
  CHECK(finished.status == 0);
  CHECK(!finished.out.empty());
  CHECK(std::regex_search(finished.err, std::regex("luaspy: frames of the kernel are not shown: "
                                                   "kernel.perf_event_paranoid is \\d, and luaspy has no CAP_PERFMON; "
                                                   "run luaspy with sudo, or set it to 0: ")));
  CHECK(finished.err.find("not shown for sleeping threads: only root") != std::string::npos);
}

}  // namespace luaspy::live::kernel_test
