#include "recording/await_command.h"

#include <csignal>

#include "base/say.h"
#include "sampling/process_tree.h"
#include "system/launch.h"

namespace luaspy {

int await_command(ProcessTree& tree, bool ends_it) {
  Session& session = tree.target();
  if (!session.launched() || session.ended()) return tree.wait_for_exit();
  const pid_t pid = session.target().process().pid();
  if (!ends_it) {
    say("luaspy: process {} is still running; luaspy ends when it does (--end-command ends it)\n", pid);
    return tree.wait_for_exit();
  }
  say("luaspy: process {} is asked to end\n", pid);
  system::ask_to_end(pid);
  const int status = tree.wait_for_exit();
  return status == 128 + SIGTERM ? 0 : status;
}

TargetOptions with_output_kept(TargetOptions target, const std::string& output) {
  target.output_to_errors = output == "-" && !target.command.empty();
  if (target.output_to_errors)
    say("luaspy: standard output is for the profile; what the command writes there goes to standard error\n");
  return target;
}

}  // namespace luaspy
