#pragma once
// A control group of the campaign's own, of version 1 or 2 (cgroups(7)): for processes that get
// little of a CPU, or are frozen.

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

  // False where this machine, or this user, has none: nothing below does anything then.
  bool usable() const { return usable_; }
  // A process with all its threads; none of them real-time: such a group has no time for these. Who
  // may have some begins in it (Child::Files::group).
  void add(pid_t pid);
  std::string procs() const { return path_ + "/cgroup.procs"; }
  // What its processes may use together: so much of each period.
  void set_quota(int us, int period_us);
  void freeze(bool frozen);

 private:
  bool write(const std::string& file, const std::string& text) const;

  std::string mount_, path_;
  int version_ = 0;
  bool usable_ = false;
};

}  // namespace luaspy::faults
