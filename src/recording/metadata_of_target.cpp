#include "recording/metadata_of_target.h"

#include <chrono>

#include "attach/program_name.h"
#include "base/version.h"
#include "sampling/process_tree.h"

namespace luaspy {

Metadata about_recording(ProcessTree& tree, Mode mode, double rate, double max_stopped) {
  Metadata about;
  about.luaspy = version;
  describe_program(tree, about);
  about.pid = tree.target().target().process().pid();
  about.mode = name(mode);
  about.rate = rate;
  about.max_stopped = max_stopped;
  about.started_s = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  return about;
}

void describe_program(ProcessTree& tree, Metadata& about) {
  const Process& process = tree.target().target().process();
  const std::string command = process.command(), executable = program_of(process.pid());
  if (!executable.starts_with('/')) return;
  about.command = command;
  about.executable = executable;
}

void describe_luas(ProcessTree& tree, Metadata& about) {
  about.luas = tree.layout_names();
  about.lua_mapped = tree.has_lua();
}

}  // namespace luaspy
