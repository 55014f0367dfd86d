#include "options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <map>

namespace luaspy {
namespace {

constexpr const char* version_text = "luaspy 0.1.0";

constexpr const char* about =
    "Where does a running Lua program spend its time, or why does it hang? luaspy looks from outside:\n"
    "no restart, no rebuild, no debug symbols, no change to the program.";

constexpr const char* examples =
    "Examples:\n"
    "  luaspy record --pid 1234 -d 30                 30 seconds of a running program, for speedscope\n"
    "  luaspy record -o slow.folded -- lua5.4 my.lua  start a program and record it until it ends\n"
    "  luaspy dump --pid 1234                         what is every thread doing right now?\n"
    "  luaspy ps                                      which processes run Lua?\n"
    "\n"
    "Exit status: 0 done; of the launched command, if there is one; else 1 internal error, 2 wrong usage,\n"
    "3 no such process, 4 no permission, 5 no Lua in the process, 6 Lua not initialised, 7 not supported\n"
    "(32-bit, kernel thread, unknown Lua), 8 output cannot be written, 9 already traced, 10 target ended\n"
    "first, 11 no samples, 126 or 127 command cannot be started.";

// A target that runs already. Both options, for what they exclude.
std::pair<CLI::Option*, CLI::Option*> add_running(CLI::App& command, TargetOptions& target) {
  const auto take = [&target](const std::string& word) {
    target.any = word == "auto";
    if (!target.any) target.pid = std::stoi(word);
  };
  auto* const pid = command.add_option_function<std::string>("-p,--pid", take, "The running process to look at; auto: the only one with Lua")
                        ->check([](const std::string& word) { return word == "auto" ? "" : CLI::PositiveNumber(word) + CLI::TypeValidator<int>()(word); })
                        ->option_text("PID");
  auto* const name = command.add_option("--name", target.name, "The same, by its name or a part of its command")->option_text("NAME");
  pid->excludes(name);
  return {pid, name};
}

void add_target(CLI::App& command, TargetOptions& target) {
  const auto [pid, name] = add_running(command, target);
  auto* const words = command.add_option("command", target.command, "After --: a command to start and look at")->option_text(" ");
  for (CLI::Option* const running : {pid, name}) running->excludes(words), words->excludes(running);
}

void add_subprocesses(CLI::App& command, bool& subprocesses) {
  command.add_flag("-s,--subprocesses", subprocesses, "The processes that it has started, too, if they run Lua");
}

void add_mode(CLI::App& command, Mode& mode) {
  static const std::map<std::string, Mode> modes = {{"merged", Mode::merged}, {"lua", Mode::lua}, {"native", Mode::native}, {"all", Mode::all}};
  command.add_option("--mode", mode, "merged: Lua and C as one stack; lua; native; all: the VM's own frames too")
      ->transform(CLI::CheckedTransformer(modes, CLI::ignore_case).description("merged|lua|native|all"))
      ->option_text("MODE");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app(about, "luaspy");
  app.get_formatter()->column_width(26);
  app.footer(examples);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);

  CLI::App& record = *app.add_subcommand("record", "Sample a program and write a profile");
  record.footer(examples);
  RecordOptions& to_record = options.record;
  add_target(record, to_record.target);
  record.add_option("-r,--rate", to_record.rate, "Samples a second (100)")->check(CLI::Range(0.01, 10000.0))->option_text("HZ");
  record.add_option("-d,--duration", to_record.duration, "Seconds to record; else until Ctrl-C or its end")->check(CLI::PositiveNumber)->option_text("SECONDS");
  record.add_option("--max-stopped", to_record.max_stopped, "Lower the rate where a thread would stand still for more of the time (10)")->check(CLI::Range(0.01, 100.0))->option_text("PERCENT");
  record.add_option("-o,--output", to_record.output, "File to write; - is standard output")->option_text("FILE");
  record.add_option("-f,--format", to_record.format, "speedscope (default) or folded")->check(CLI::IsMember({"speedscope", "folded"}))->option_text("FORMAT");
  add_subprocesses(record, to_record.subprocesses);
  add_mode(record, to_record.mode);
  record.add_flag("--lines", to_record.lines, "Frames show the line being executed, not the function's");
  record.add_flag("--threads", to_record.threads, "In folded output, a root frame for each thread");
  record.add_flag("--vmstate", to_record.vmstate, "A root frame for what the VM was doing: interpreting, collecting, ...");
  record.add_flag("--traces", to_record.traces, "LuaJIT: a frame for each trace, by number and first line");
  record.add_flag("--idle", to_record.idle, "Sample sleeping threads too (wall-clock time); they are read, not stopped");

  CLI::App& dump = *app.add_subcommand("dump", "Print what every thread is doing, once");
  dump.footer(examples);
  add_running(dump, options.dump.target);
  add_mode(dump, options.dump.mode);
  dump.add_flag("--traces", options.dump.traces, "LuaJIT: a frame for each trace, by number and first line");
  dump.add_flag("--locals", options.dump.locals, "Names and values of parameters, locals, varargs and upvalues");
  dump.add_flag("-v,--verbose", options.dump.verbose, "Longer values: strings to 1000 bytes, tables to 100 entries, two deep");
  dump.add_flag("--coroutines", options.dump.coroutines, "All coroutines of all Lua states, and where each of them waits");
  add_subprocesses(dump, options.dump.subprocesses);
  dump.add_option("--count", options.dump.count, "Look so often, and tell what moved: is it a hang?")->check(CLI::Range(1, 10000))->option_text("N");
  dump.add_option("--interval", options.dump.interval, "Seconds between two looks (1)")->check(CLI::Range(0.0, 86400.0))->option_text("SECONDS");
  dump.add_flag("--json", options.dump.json, "Print an object of JSON");

  CLI::App& ps = *app.add_subcommand("ps", "List the processes that run Lua");
  ps.footer(examples);
  ps.add_flag("--states", options.ps.states, "Count their states too: reads up to 256 MiB of each");
  ps.add_flag("--json", options.ps.json, "Print an object of JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : static_cast<int>(Cause::usage);
    return std::nullopt;
  }
  options.command = dump.parsed() ? Options::Command::dump : ps.parsed() ? Options::Command::ps : Options::Command::record;
  const auto is_given = [](const TargetOptions& target) { return target.pid != 0 || target.any || !target.name.empty() || !target.command.empty(); };
  if ((record.parsed() && !is_given(to_record.target)) || (dump.parsed() && !is_given(options.dump.target))) {
    fmt::print(stderr, "luaspy: say what to look at: --pid PID, --name NAME{}\n", record.parsed() ? ", or -- and a command" : "");
    exit_code = static_cast<int>(Cause::usage);
    return std::nullopt;
  }
  return options;
}

}  // namespace luaspy
