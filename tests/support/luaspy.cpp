#include "support/luaspy.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

namespace luaspy::faults {
namespace {

// Two of three commands stop threads even where luaspy does not need to, because stops can do harm.
Words command(Words words, const std::string& profile) {
  static int looping = 0;
  if ((words[0] == "record" || words[0] == "top") && ++looping % 3 != 0)
    words.insert(words.begin() + 1, "--always-stop");
  words.insert(words.begin(), LUASPY_PROGRAM);
  for (std::string& word : words) {
    if (word == "profile") word = profile;
  }
  return words;
}

Child::Files with_errors(Child::Files files, const std::string& errors) {
  if (files.terminal) return files;
  write_file(errors, "");
  std::filesystem::permissions(errors, std::filesystem::perms(0666));
  files.errors = errors;
  return files;
}

}  // namespace

Luaspy::Luaspy(const Words& words, const Folder& folder, Child::Files files)
    : profile_(folder.path("profile")),
      errors_(folder.path("errors")),
      process_(command(words, profile_), with_errors(std::move(files), errors_)) {}

std::string Luaspy::where() const {
  const std::string file = profile_ + ".where";
  Child gdb({"gdb", "-nx", "-batch", "-p", std::to_string(process_.pid()), "-ex", "thread apply all bt 20"},
            {.output = file});
  (void)gdb.wait(60);
  return read_file(file);
}

bool Luaspy::await_state(char letter) const {
  const double deadline = now_s() + 1;
  while (now_s() < deadline && process_.alive()) {
    bool all = true;
    std::error_code none;
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_.pid()), none)) {
      const std::string stat = read_file(task.path().string() + "/stat");
      const std::size_t end = stat.rfind(')');
      all &= end != std::string::npos && stat.at(end + 2) == letter;
    }
    if (all) return true;
  }
  return false;
}

bool Luaspy::await_recording() const {
  const double deadline = now_s() + 20;
  while (now_s() < deadline && process_.alive()) {
    const std::string status = read_file(fmt::format("/proc/{}/status", process_.pid()));
    const std::size_t at = status.find("SigCgt:\t");
    const auto catches = [&](int signal) {
      return (std::stoull(status.substr(at + 8, 16), nullptr, 16) >> (signal - 1) & 1) != 0;
    };
    if (at != std::string::npos && catches(SIGTERM) && catches(SIGALRM)) return true;
    sleep_ms(0.2);
  }
  return false;
}

}  // namespace luaspy::faults
