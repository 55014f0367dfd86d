#pragma once
// The options of a target, as a command receives them (session.h opens it).

#include <string>
#include <vector>

namespace luaspy {

// What to look at.
struct TargetOptions {
  int pid = 0;  // 0: launch `command`
  std::vector<std::string> command;
  bool output_to_errors = false;  // the command's standard output is luaspy's standard error
  // any: --pid auto, the only process that runs Lua. name: --name. main.cpp turns them into a pid
  // (choose_target.h) before a command sees them.
  bool any = false;
  std::string name;
  bool debuginfod = false;  // fetch the debug files of its programs (debuginfod.h)
};

}  // namespace luaspy
