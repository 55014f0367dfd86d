#include "group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "support/child.h"

namespace luaspy::faults {

using namespace tests;

Group::Group(Controller controller) {
  const bool cpu = controller == Controller::cpu;
  struct Place {
    std::string mount, file;
    int version;
  };
  // Version 2 alone, version 2 beside version 1, and version 1.
  const std::vector<Place> places = {
      {"/sys/fs/cgroup", cpu ? "cpu.max" : "cgroup.freeze", 2},
      {cpu ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup/freezer", cpu ? "cpu.cfs_quota_us" : "freezer.state", 1},
      {"/sys/fs/cgroup/unified", cpu ? "cpu.max" : "cgroup.freeze", 2}};
  for (const Place& place : places) {
    mount_ = place.mount, version_ = place.version;
    path_ = fmt::format("{}/luaspy-faults-{}", mount_, ::getpid());
    if (::access((mount_ + "/cgroup.procs").c_str(), W_OK) != 0 || ::mkdir(path_.c_str(), 0755) != 0) continue;
    usable_ = ::access((path_ + "/" + place.file).c_str(), W_OK) == 0;
    if (usable_) return;
    ::rmdir(path_.c_str());
  }
}

Group::~Group() {
  if (!usable_) return;
  freeze(false);
  std::istringstream pids(read_file(path_ + "/cgroup.procs"));
  for (std::string pid; pids >> pid;) write(mount_ + "/cgroup.procs", pid);
  for (int tries = 0; ::rmdir(path_.c_str()) != 0 && tries < 100; ++tries) sleep_ms(5);  // while its processes end
}

// Writes a file of the kernel in one call: if the kernel rejects the text, the write fails.
bool Group::write(const std::string& file, const std::string& text) const {
  const int out = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const bool good = out >= 0 && ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (out >= 0) ::close(out);
  return good;
}

void Group::add(pid_t pid) {
  if (usable_ && !write(path_ + "/cgroup.procs", std::to_string(pid))) give_up("cannot put a process into " + path_);
}

void Group::set_quota(int us, int period_us) {
  if (!usable_) return;
  const bool good = version_ == 2 ? write(path_ + "/cpu.max", fmt::format("{} {}", us, period_us))
                                  : write(path_ + "/cpu.cfs_period_us", std::to_string(period_us)) &&
                                        write(path_ + "/cpu.cfs_quota_us", std::to_string(us));
  if (!good) give_up("cannot set the quota of " + path_);
}

void Group::freeze(bool frozen) {
  if (!usable_) return;
  if (version_ == 2) write(path_ + "/cgroup.freeze", frozen ? "1" : "0");
  else write(path_ + "/freezer.state", frozen ? "FROZEN" : "THAWED");
}

}  // namespace luaspy::faults
