#include "record/about.h"

#include <chrono>

#include "attach/program_name.h"
#include "base/version.h"

namespace luaspy {

About about_recording(Family& family, Mode mode, double rate, double max_stopped) {
  About about;
  about.luaspy = version;
  tell_program(family, about);
  about.pid = family.target().target().process().pid();
  about.mode = name(mode);
  about.rate = rate;
  about.max_stopped = max_stopped;
  about.started_s = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  return about;
}

void tell_program(Family& family, About& about) {
  const Process& process = family.target().target().process();
  const std::string command = process.command(), executable = program_of(process.pid());
  if (!executable.starts_with('/')) return;
  about.command = command;
  about.executable = executable;
}

void tell_luas(Family& family, About& about) {
  about.luas = family.rows();
  about.lua_mapped = family.has_lua();
}

}  // namespace luaspy
