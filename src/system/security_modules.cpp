#include "system/security_modules.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "system/calls.h"

namespace luaspy::system {
namespace {

// include/uapi/linux/lsm.h: LSM_ID_*, from LSM_ID_CAPABILITY on.
constexpr std::uint64_t first_id = 100;
constexpr std::array names = {"capability", "selinux",  "smack", "tomoyo",   "apparmor", "yama", "loadpin",
                              "safesetid",  "lockdown", "bpf",   "landlock", "ima",      "evm",  "ipe"};

std::optional<std::vector<std::string>> listed_by_call() {
  constexpr long lsm_list_modules = 461;  // one number for all processors; since Linux 6.8
  std::array<std::uint64_t, 64> ids{};
  std::uint32_t size = sizeof ids;
  const long count = ::syscall(lsm_list_modules, ids.data(), &size, 0);
  if (count < 0 || static_cast<std::size_t>(count) > ids.size()) return std::nullopt;
  std::vector<std::string> modules;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const bool is_known = ids[i] >= first_id && ids[i] - first_id < names.size();
    modules.push_back(is_known ? names[ids[i] - first_id] : fmt::format("security module {}", ids[i]));
  }
  return modules;
}

// One line of names with commas between them, if securityfs is mounted.
std::optional<std::vector<std::string>> listed_in_file() {
  const std::optional<std::string> text = read_file("/sys/kernel/security/lsm");
  if (!text) return std::nullopt;
  std::vector<std::string> modules(1);
  for (const char c : *text) {
    if (c == ',') modules.emplace_back();
    else if (c != '\n') modules.back() += c;
  }
  return modules;
}

}  // namespace

std::optional<std::vector<std::string>> security_modules() {
  std::optional<std::vector<std::string>> modules = listed_by_call();
  if (!modules) modules = listed_in_file();
  if (modules && read_file("/sys/fs/selinux/enforce").value_or("1") == "0") std::erase(*modules, "selinux");
  return modules;
}

std::string security_label(pid_t pid) {
  std::string label = read_file(fmt::format("/proc/{}/attr/current", pid)).value_or("");
  while (!label.empty() && (label.back() == '\0' || label.back() == '\n')) label.pop_back();
  return label;
}

}  // namespace luaspy::system
