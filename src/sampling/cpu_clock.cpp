#include "sampling/cpu_clock.h"

namespace luaspy {

void CpuClock::Sums::add(const Used& used) {
  switch (used.kind) {
    case Kind::lua:
      use.lua_ns += used.ns();
      if (used.read_ns() <= 0) break;
      read_ns += used.read_ns();
      // Rounded down. Of a process of 100 ms that spends 9 % in the kernel, nothing is left.
      system_ns += std::min(used.now.system_ns - used.before.system_ns + used.now.tick_ns, used.read_ns());
      break;
    case Kind::other:
      use.other_ns += used.ns();
      break;
    case Kind::unknown:
      use.unknown_ns += used.ns();
      break;
  }
}

void CpuClock::begin(pid_t pid, bool runs_lua) {
  Used& used = processes_[pid];
  used = {};
  used.kind = runs_lua ? Kind::lua : Kind::other;
  read(pid);
  used.before = used.now;
}

void CpuClock::born(pid_t pid) {
  if (processes_.size() >= room_) forget_ended();
  Used& used = processes_[pid];
  gone_.add(used);
  used = {};
}

// One that lives is read again, with all that it has used since it began.
void CpuClock::forget_ended() {
  std::erase_if(processes_, [&](const auto& each) {
    if (cpu_time_of(each.first)) return false;
    gone_.add(each.second);
    return true;
  });
  room_ = std::max(room_, 2 * processes_.size());
}

void CpuClock::runs_other(pid_t pid) {
  Kind& kind = processes_[pid].kind;
  if (kind == Kind::unknown) kind = Kind::other;
}

void CpuClock::read(pid_t pid) {
  if (const std::optional<ProcessCpuTime> now = cpu_time_of(pid)) record(pid, *now);
}

// Too little was read of processes that live for milliseconds to tell how much of their time is system time.
CpuUse CpuClock::use(pid_t root, bool children) const {
  constexpr double enough = 0.8;
  Sums sums = gone_;
  for (const auto& [pid, used] : processes_) sums.add(used);
  CpuUse& use = sums.use;
  const auto of_root = processes_.find(root);
  if (children && of_root != processes_.end()) {
    const std::int64_t waited_for = of_root->second.now.children_ns - of_root->second.before.children_ns;
    const std::int64_t known = use.lua_ns + use.other_ns + use.unknown_ns - of_root->second.ns();
    use.unknown_ns += std::max<std::int64_t>(waited_for - known, 0);
  }
  const auto read_ns = static_cast<double>(sums.read_ns);
  if (read_ns > 0 && read_ns >= enough * static_cast<double>(use.lua_ns))
    use.system_share = std::min(static_cast<double>(sums.system_ns) / read_ns, 1.0);
  return use;
}

CpuUse operator-(const CpuUse& now, const CpuUse& before) {
  return {now.lua_ns - before.lua_ns, now.other_ns - before.other_ns, now.unknown_ns - before.unknown_ns,
          now.system_share};
}

CpuUse& operator+=(CpuUse& sum, const CpuUse& more) {
  sum.lua_ns += more.lua_ns, sum.other_ns += more.other_ns, sum.unknown_ns += more.unknown_ns;
  return sum;
}

}  // namespace luaspy
