// What luaspy alloc says that each block is for, where the type is found by reading the block (5.1, LuaJIT, and
// parts of tables everywhere): it must not matter who is faster, luaspy or the program. Each is made late by
// force: luaspy sleeps before it reads, or the program shares its CPU with one that has ten times its weight.
// Status 1: tables, their parts and closures are not told apart.

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "allocations/allocation_loop.h"
#include "allocations/counting_program.h"
#include "attach/own_cpu.h"
#include "sampling/process_tree.h"
#include "system/signals.h"

namespace luaspy::allocations {
namespace {

using tests::Child;
using tests::Words;
using namespace std::chrono_literals;

enum class Late { nobody, luaspy, program };

// By the function that allocates: how many samples there are of each kind.
class Uses : public AllocationSink {
 public:
  explicit Uses(const StackTable& stacks) : stacks_(stacks) {}
  void add(ThreadId, const Tick&, const AllocationSample& allocation, Sample& sample) override {
    std::string site;
    for (const Frame& frame : stacks_.frames_of(sample.stack)) {
      if (frame.name.find("_site") != std::string::npos) site = frame.name;
    }
    ++uses_[site][name(allocation.use)];
  }
  void add_loss(Loss) override {}
  void look(const AllocationCounts&) override {}

  // Of a site's samples at least so many per cent have one of these uses, and each of them is seen.
  bool has(const std::string& site, const std::set<std::string>& expected, double least) const {
    const auto found = uses_.find(site);
    if (found == uses_.end()) return false;
    double all = 0, right = 0;
    std::set<std::string> seen;
    for (const auto& [use, count] : found->second) {
      all += count;
      if (expected.contains(use)) right += count, seen.insert(use);
    }
    const double by_chance = 2 * std::sqrt(least / 100 * (1 - least / 100) / all);  // two standard deviations
    return seen.size() == expected.size() && right >= (least / 100 - by_chance) * all;
  }
  std::string text() const {
    std::string text;
    for (const auto& [site, uses] : uses_) {
      for (const auto& [use, count] : uses) text += fmt::format("  {} {} {}\n", site, use, count);
    }
    return text;
  }

 private:
  const StackTable& stacks_;
  std::map<std::string, std::map<std::string, int>> uses_;
};

// Both on one CPU; the other process has the weight of nice 0, the program that of nice 10 (sched(7)).
std::unique_ptr<Child> delay(pid_t program, int cpu) {
  auto busy = std::make_unique<Child>(Words{"/bin/sh", "-c", "while :; do :; done"});
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  for (const pid_t pid : {program, busy->pid()}) (void)::sched_setaffinity(pid, sizeof set, &set);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(program), 10);
  return busy;
}

bool check(const Source& source, const std::string& path, Late late) {
  const std::vector<int> cpus = usable_cpus();
  const Program program({path, LUASPY_WORKLOADS "/allocations.lua", "loops", source.is_luajit ? "jit-off" : ""});
  const std::unique_ptr<Child> busy = late == Late::program ? delay(program.pid(), cpus.front()) : nullptr;
  TargetOptions target;
  target.pid = program.pid();
  SamplerOptions sampler;
  sampler.idle = true;
  Result<ProcessTree> family = ProcessTree::open(target, sampler, false);
  if (!family) tests::give_up(family.error().text);
  Uses uses(family->tables().stacks);
  AllocationLoopOptions options{late == Late::program ? 12.0 : 3.0, 50};
  if (late == Late::luaspy) options.before_use = [] { (void)system::sleep_until(system::Clock::now() + 2ms); };
  constexpr std::int64_t enough = 60;  // for each use to be seen: the rarest is a tenth
  constexpr int most_runs = 12;
  std::int64_t samples = 0;
  for (int i = 0; i < most_runs && samples < enough; ++i) {
    AllocationCounts counts;
    const Result<void> done = run_allocation_loop(*family, options, uses, counts);
    if (!done) tests::give_up(done.error().text);
    samples += counts.samples;
  }
  const bool right = uses.has("loops_site1", {"[table]", "[part of a table]"}, 80) &&
                     uses.has("loops_site2", {"[function]", "[upvalue]"}, 80) && program.is_alive();
  fmt::print("{} {}: {} samples, {}\n{}", source.version,
             late == Late::nobody   ? "nobody late"
             : late == Late::luaspy ? "luaspy late"
                                    : "program late",
             samples, right ? "right" : "WRONG", right ? "" : uses.text());
  return right;
}

int run() {
  const tests::Folder folder;
  std::vector<Source> luas;  // the others tell the type of objects
  for (const Source& source : sources()) {
    if (source.version.starts_with("5.1") || source.is_luajit) luas.push_back(source);
  }
  for (const Source& source : luas) compile(source, folder.path(source.version));
  system::watch_signals();
  bool right = !luas.empty();
  for (const Source& source : luas) {
    for (const Late late : {Late::nobody, Late::luaspy, Late::program})
      right = check(source, folder.path(source.version), late) && right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace luaspy::allocations

int main() { return luaspy::allocations::run(); }
