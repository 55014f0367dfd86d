#include "cli/shared_options.h"

#include <fmt/format.h>

#include <map>

#include "cli/values.h"
#include "output/format.h"

namespace luaspy {
namespace {

// The names, each line of them on a new one, no wider than --help has room for.
std::string in_lines(const std::vector<std::string>& names) {
  constexpr std::size_t widest = 72;
  std::string text;
  std::size_t width = widest;
  for (const std::string& name : names) {
    const bool fits = width + 1 + name.size() <= widest;
    text += (fits ? " " : "\n") + name;
    width = (fits ? width + 1 : 0) + name.size();
  }
  return text;
}

}  // namespace

std::pair<CLI::Option*, CLI::Option*> add_running(CLI::App& command, TargetOptions& target) {
  const auto take = [&target](const std::string& word) {
    target.any = word == "auto";
    if (!target.any) target.pid = std::stoi(word);
  };
  auto* const pid = command
                        .add_option_function<std::string>("-p,--pid", take,
                                                          "The running process to look at; auto: the only one with Lua")
                        ->check(process_number())
                        ->option_text("PID");
  auto* const name = command.add_option("--name", target.name, "The same, by its name or part of its command line")
                         ->option_text("NAME");
  pid->excludes(name);
  return {pid, name};
}

void add_target(CLI::App& command, TargetOptions& target) {
  const auto [pid, name] = add_running(command, target);
  auto* const words = command.add_option("command", target.command, "After --: a command to start and look at")
                          ->option_text(" ");
  for (CLI::Option* const running : {pid, name}) running->excludes(words), words->excludes(running);
}

void add_end_command(CLI::App& command, bool& end_command) {
  command.add_flag("--end-command", end_command, "End the command too, when the recording ends (SIGTERM)")
      ->option_text(" ")
      ->needs(command.get_option("command"));
}

CLI::Option* add_core(CLI::App& command, std::string& core, std::string& executable, std::string& root) {
  CLI::Option* const option = command
                                  .add_option("--core", core,
                                              "A core file, of a crash or of gcore, instead of a live process")
                                  ->option_text("FILE");
  command.add_option("--exe", executable, "Where the program of the core file is now")
      ->option_text("PATH")
      ->needs(option);
  command.add_option("--sysroot", root, "The directory under which its libraries are (/)")
      ->option_text("DIRECTORY")
      ->needs(option);
  return option;
}

void add_debuginfod(CLI::App& command, TargetOptions& target) {
  command.add_flag("--debuginfod", target.debuginfod, "Fetch missing symbols from the servers in DEBUGINFOD_URLS");
}

void add_subprocesses(CLI::App& command, bool& subprocesses) {
  command
      .add_flag("-s,--subprocesses", subprocesses,
                "Also the processes that it has started, if they run Lua (always, after --)")
      ->option_text(" ");  // what it excludes is said when it is used
}

void add_rate(CLI::App& command, double& rate) {
  command.add_option("-r,--rate", rate, "Samples per second (100)")->check(number(0.01, 10000))->option_text("HZ");
}

void add_max_stopped(CLI::App& command, double& max_stopped) {
  command
      .add_option("--max-stopped", max_stopped,
                  fmt::format("Lower the rate so that no thread is stopped for more of the time ({:g})", max_stopped))
      ->check(number(0.01, 100))
      ->option_text("PERCENT");
}

void add_always_stop(CLI::App& command, bool& always_stop) {
  command.add_flag("--always-stop", always_stop, "Stop threads with ptrace even if they could be read without it");
}

void add_kernel(CLI::App& command, bool& kernel) {
  command.add_flag("--kernel", kernel, "Show the kernel's functions too: system calls, page faults, interrupts");
}

void add_mode(CLI::App& command, Mode& mode) {
  static const std::map<std::string, Mode> modes = {
      {"merged", Mode::merged}, {"lua", Mode::lua}, {"native", Mode::native}, {"all", Mode::all}};
  command.add_option("--mode", mode, "merged: Lua and C as one stack; lua; native; all: the VM's own frames too")
      ->transform(one_of(modes, {"merged", "lua", "native", "all"}))
      ->option_text("MODE");
}

void add_mode_of_recording(CLI::App& command, Mode& mode) {
  static const std::map<std::string, Mode> modes = {{"merged", Mode::merged}, {"lua", Mode::lua}, {"all", Mode::all}};
  command.add_option("--mode", mode, "merged: Lua and C as one stack; lua; all: the VM's own frames too")
      ->transform(one_of(modes, {"merged", "lua", "all"}))
      ->option_text("MODE");
}

void add_patterns(CLI::App& command, std::string& only, std::string& ignore) {
  command.add_option("--only", only, "Only samples with a matching function or file (a regular expression)")
      ->option_text("PATTERN");
  command.add_option("--ignore", ignore, "Leave out samples with a matching function or file")->option_text("PATTERN");
}

void add_output(CLI::App& command, std::string& output, std::string& format, const std::string& otherwise,
                const std::vector<std::string>& more) {
  command.add_option("-o,--output", output, "File to write; - is standard output")->option_text("FILE");
  command
      .add_option(
          "-f,--format", format,
          fmt::format("One of these; by default as FILE ends, or {}:{}", otherwise, in_lines(format_names(more))))
      ->check(format_name(more))
      ->option_text("FORMAT");
}

void add_shape(CLI::App& command, ViewOptions& shape, bool& threads) {
  command.add_flag("--lines", shape.lines, "Frames show the line being executed, not the function's");
  command.add_flag("--threads", threads, "In folded and svg output, a root frame for each thread");
  command.add_flag("--vmstate", shape.vmstate, "A root frame for what the VM was doing: interpreting, collecting, ...");
  command.add_flag("--gc", shape.gc, "An innermost frame where garbage is collected");
  add_patterns(command, shape.only, shape.ignore);
}

CLI::Option* add_all_threads(CLI::App& command, ViewOptions& shape) {
  shape.sleepers = false;
  return command.add_flag("--all-threads", shape.sleepers, "With --idle: also threads that were only seen asleep");
}

}  // namespace luaspy
