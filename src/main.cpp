#include <fmt/format.h>

#include <clocale>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <new>
#include <optional>
#include <utility>

#include "agent/agent.h"
#include "alloc/alloc.h"
#include "base/say.h"
#include "cli/options.h"
#include "doctor/doctor.h"
#include "dump/dump.h"
#include "heapreport/heap.h"
#include "jit/jit.h"
#include "ps/choose_target.h"
#include "ps/ps.h"
#include "push/push.h"
#include "record/record.h"
#include "record/record_allocations.h"
#include "report/report.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "top/top.h"
#include "view/view.h"

namespace {

luaspy::Result<int> print(const std::string& text) {
  std::cout << text;
  if (const luaspy::Result<void> written = luaspy::system::flush_standard_output("the text"); !written)
    return written.error();
  return 0;
}

// "": of all commands.
std::string manual(const std::string& name) {
  const luaspy::Usage usage = luaspy::usage();
  for (const luaspy::UsageCommand& command : usage.commands) {
    if (command.name == name) return luaspy::manual_page(usage, command);
  }
  return luaspy::manual_page(usage);
}

// --pid auto and --name become a pid.
luaspy::Result<void> choose(luaspy::TargetOptions& target, std::optional<bool> subprocesses) {
  if (!target.any && target.name.empty()) return {};
  const luaspy::Result<int> pid = luaspy::choose_target(target.name, subprocesses);
  if (!pid) return pid.error();
  target.pid = *pid;
  return {};
}

luaspy::Result<int> run_command(luaspy::Options& options) {
  const std::initializer_list<std::pair<luaspy::TargetOptions*, std::optional<bool>>> targets = {
      {&options.record.target, options.record.subprocesses}, {&options.top.target, options.top.subprocesses},
      {&options.dump.target, options.dump.subprocesses},     {&options.heap.target, options.heap.subprocesses},
      {&options.alloc.target, options.alloc.subprocesses},   {&options.doctor.target, {}},
      {&options.jit.target, options.jit.subprocesses}};
  for (const auto& [target, subprocesses] : targets) {
    if (const luaspy::Result<void> chosen = choose(*target, subprocesses); !chosen) return chosen.error();
  }

  switch (options.command) {
    case luaspy::Options::Command::record:
      return options.record.allocations ? luaspy::record_with_allocations(options.record)
                                        : luaspy::record(options.record);
    case luaspy::Options::Command::report:
      return luaspy::report(options.report);
    case luaspy::Options::Command::top:
      return luaspy::top(options.top);
    case luaspy::Options::Command::dump:
      return luaspy::dump(options.dump);
    case luaspy::Options::Command::heap:
      return luaspy::heap(options.heap);
    case luaspy::Options::Command::alloc:
      return luaspy::alloc(options.alloc);
    case luaspy::Options::Command::ps:
      return luaspy::ps(options.ps);
    case luaspy::Options::Command::doctor:
      return luaspy::doctor(options.doctor);
    case luaspy::Options::Command::jit:
      return luaspy::jit(options.jit);
    case luaspy::Options::Command::view:
      return luaspy::view(options.view);
    case luaspy::Options::Command::push:
      return luaspy::push(options.push);
    case luaspy::Options::Command::agent:
      return luaspy::agent(options.agent);
    case luaspy::Options::Command::completion:
      return print(completion(luaspy::usage(), options.completion.shell));
    case luaspy::Options::Command::manual:
      return print(manual(options.manual.command));
  }
  return luaspy::Error{luaspy::Cause::internal, "no such command"};
}

int run(int argc, char** argv) {
  int exit_code = 0;
  std::optional<luaspy::Options> options = luaspy::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  const luaspy::Result<int> status = run_command(*options);
  if (status) return *status;
  if (status.error().cause == luaspy::Cause::reader_gone) luaspy::system::end_without_reader();
  luaspy::say("luaspy: {}\n", status.error().text);
  return static_cast<int>(status.error().cause);
}

}  // namespace

int main(int argc, char** argv) {
  luaspy::system::outlive_shorter_files();
  luaspy::system::open_standard_output();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    luaspy::say("luaspy: There is not enough memory.\n");
    return static_cast<int>(luaspy::Cause::internal);
  } catch (const std::exception& error) {
    luaspy::say("luaspy: internal error: {}\n", error.what());
    return static_cast<int>(luaspy::Cause::internal);
  }
}
