#pragma once
// A control group of the campaign, of version 1 or 2 (cgroups(7)): for processes that get a small
// share of a CPU, or are frozen.

#include <sys/types.h>

#include <string>
#include <vector>

namespace luaspy::faults {

class Group {
 public:
  enum class Controller { cpu, freezer };
  explicit Group(Controller controller);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();  // thaws it, and puts its processes back

  // False if this machine or this user cannot have one: then the functions below do nothing.
  bool usable() const { return usable_; }
  // Adds a process with all its threads. None of them may be real-time, for which such a group has
  // no time. A process that may have real-time threads must start in the group
  // (Child::Files::group).
  void add(pid_t pid);
  std::string procs() const { return path_ + "/cgroup.procs"; }
  // Limits the CPU time of all its processes together, per period.
  void set_quota(int us, int period_us);
  void freeze(bool frozen);

 private:
  bool write(const std::string& file, const std::string& text) const;

  std::string mount_, path_;
  int version_ = 0;
  bool usable_ = false;
};

}  // namespace luaspy::faults
