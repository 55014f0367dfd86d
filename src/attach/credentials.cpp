#include "attach/credentials.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "attach/own_cpu.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

// The rest of the line of /proc/PID/status that begins with "\nNAME:".
std::string_view line_of(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(fmt::format("\n{}:", name));
  if (at == status.npos) return {};
  const std::string_view rest = status.substr(at + name.size() + 2);
  return rest.substr(0, rest.find('\n'));
}

// Of the calling thread. These are system calls because the C library's functions of these names
// change all threads of a process.
bool become(const Credentials& who) {
  if (::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) != 0) return false;
  ::setfsgid(who.group), ::setfsuid(who.user);
  constexpr auto no_change = static_cast<uid_t>(-1);  // setfsuid(2): the only way to learn whether it has succeeded
  if (static_cast<gid_t>(::setfsgid(no_change)) != who.group || static_cast<uid_t>(::setfsuid(no_change)) != who.user)
    return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> words{};
  if (::syscall(SYS_capget, &header, words.data()) != 0) return false;
  const std::uint64_t kept = who.user == 0 ? who.capabilities : 0;
  words[0].effective &= static_cast<std::uint32_t>(kept);
  words[1].effective &= static_cast<std::uint32_t>(kept >> 32);
  return ::syscall(SYS_capset, &header, words.data()) == 0;
}

struct Act {
  const Credentials& who;
  const std::function<void()>& act;
  bool done = false;
};

void* run(void* argument) {
  Act& act = *static_cast<Act*>(argument);
  act.done = become(act.who);
  if (act.done) act.act();
  return nullptr;
}

}  // namespace

std::optional<Credentials> credentials_of(pid_t pid) {
  const std::string status = system::read_file(fmt::format("/proc/{}/status", pid)).value_or("");
  std::string_view users = line_of(status, "Uid"), groups = line_of(status, "Gid"), more = line_of(status, "Groups");
  if (users.empty() || groups.empty()) return std::nullopt;
  Credentials found;
  // Real, effective, saved, file system.
  const auto user = number<uid_t>(next_word(users));
  const auto group = number<gid_t>(next_word(groups));
  skip_words(users, 2), skip_words(groups, 2);
  if (number<uid_t>(next_word(users)) != user || number<gid_t>(next_word(groups)) != group) return found;
  found.user = user, found.group = group;
  for (std::string_view word = next_word(more); !word.empty(); word = next_word(more))
    found.groups.push_back(number<gid_t>(word));
  std::string_view effective = line_of(status, "CapEff");
  found.capabilities = number<std::uint64_t>(next_word(effective), 16);
  return found;
}

bool act_as(const Credentials& who, const std::function<void()>& act) {
  // The kernel takes this from a process that changes whose files it may use (prctl(2)).
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  Act job{who, act};
  pthread_t thread{};
  if (!start_thread(thread, run, &job)) return false;
  ::pthread_join(thread, nullptr);
  if (dumpable == 1) ::prctl(PR_SET_DUMPABLE, 1);
  return job.done;
}

}  // namespace luaspy
