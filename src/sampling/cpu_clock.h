#pragma once
// The CPU time of a tree's processes since it began, whoever has seen them. /proc has that of the living, in
// clock ticks, and of ended children as one sum, once somebody has waited for them. Births tell it of each
// thread that ends, to the ns.

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "attach/process.h"
#include "base/cpu_use.h"

namespace luaspy {

class CpuClock {
 public:
  // A process that exists when the clock begins: what it has used before does not count.
  void begin(pid_t pid, bool runs_lua);
  // A process that was born since. A number that is used again is another process.
  void born(pid_t pid);
  // What it runs by now. One that execs another program stays what it was: that is what most of its time was.
  void runs_lua(pid_t pid) { processes_[pid].kind = Kind::lua; }
  void runs_other(pid_t pid);
  // A thread of it has ended (Birth::Kind::cpu_time).
  void add_ended(pid_t pid, std::int64_t ns) { processes_[pid].ended_ns += ns; }
  // Reads the clock of a process; often, as one that was not born under luaspy's eyes takes its time with it.
  void read(pid_t pid);
  // The same, as was read.
  void record(pid_t pid, const ProcessCpuTime& now) { processes_[pid].now = now; }
  // Since the clock began, as far as it was read. `children`: also of those that the process `root` has waited
  // for, and that nobody has told of.
  CpuUse use(pid_t root, bool children) const;

 private:
  enum class Kind : std::uint8_t { unknown, lua, other };
  struct Used {
    Kind kind = Kind::unknown;
    ProcessCpuTime before, now;  // when the clock began, as read last
    std::int64_t ended_ns = 0;
    std::int64_t read_ns() const { return now.ns - before.ns; }
    // The threads that have ended are a part of what was read, unless that was long before the end.
    std::int64_t ns() const { return std::max(read_ns(), ended_ns); }
  };
  struct Sums {
    CpuUse use;
    std::int64_t read_ns = 0, system_ns = 0;  // of lua_ns: what was read; of that, at most, in the kernel
    void add(const Used& used);
  };

  void forget_ended();

  std::unordered_map<pid_t, Used> processes_;
  std::size_t room_ = 1 << 14;  // for processes, before those that have ended are forgotten: there may be no end of
                                // them
  Sums gone_;                   // of processes whose numbers were used again, and of those that were forgotten
};

// What was used between two readings.
CpuUse operator-(const CpuUse& now, const CpuUse& before);
CpuUse& operator+=(CpuUse& sum, const CpuUse& more);

}  // namespace luaspy
