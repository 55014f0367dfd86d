#include "cli/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

#include "base/version.h"
#include "cli/command_notes.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/help_layout.h"
#include "cli/wrong_usage.h"

namespace luaspy {
namespace {

constexpr const char* about =
    "Where does a running Lua program spend its time, or why does it hang? luaspy looks from outside:\n"
    "no restart, no rebuild, no debug symbols, no change to the program.";

// True, with an error printed, if no target was given.
bool lacks_target(const Options& options) {
  const auto lacks = [](const TargetOptions& target, std::string_view or_command) {
    if (target.pid != 0 || target.any || !target.name.empty() || !target.command.empty()) return false;
    fmt::print(stderr, "luaspy: say what to look at: --pid PID, --name NAME{}\n", or_command);
    return true;
  };
  constexpr std::string_view or_command = ", or -- and a command";
  switch (options.command) {
    case Options::Command::record:
      return lacks(options.record.target, or_command);
    case Options::Command::top:
      return lacks(options.top.target, or_command);
    case Options::Command::dump:
      return options.dump.core.empty() && lacks(options.dump.target, ", or --core FILE");
    case Options::Command::heap:
      if (options.heap.diff && options.heap.files.size() != 2) {
        fmt::print(stderr, "luaspy: --diff needs two snapshots: luaspy heap --diff BEFORE AFTER\n");
        return true;
      }
      if (options.heap.rss && options.heap.output == "-") {
        fmt::print(stderr, "luaspy: --rss prints its report where -o - writes to: name a file\n");
        return true;
      }
      return options.heap.core.empty() && options.heap.files.empty() &&
             lacks(options.heap.target, ", --core FILE, or the name of a snapshot");
    case Options::Command::alloc:
      return lacks(options.alloc.target, or_command);
    case Options::Command::doctor:
      return lacks(options.doctor.target, "");
    case Options::Command::jit:
      return lacks(options.jit.target, or_command);
    case Options::Command::agent:
      if (!options.agent.engine.to.empty() || options.agent.keep > 0 || options.agent.snapshot || options.agent.status)
        return false;
      fmt::print(stderr,
                 "luaspy: say where profiles go: --to URL, or --keep 10m --snapshots FOLDER to keep them here\n");
      return true;
    case Options::Command::report:
    case Options::Command::ps:
    case Options::Command::view:
    case Options::Command::push:
    case Options::Command::completion:
    case Options::Command::manual:
      break;
  }
  return false;
}

bool lacks_recording(const Options& options) {
  if (options.command != Options::Command::report) return false;
  const bool lacks_file = options.report.files.empty() && options.report.diff.empty();
  if (lacks_file) fmt::print(stderr, "luaspy: say which recording: luaspy report FILE, or --diff BEFORE AFTER\n");
  const bool no_time = options.report.by == "samples" && options.report.fail_if_slower;
  if (no_time)
    fmt::print(stderr,
               "luaspy: --fail-if-slower compares time: --by run (the same work), or --by time (the same load)\n");
  const bool no_run = options.report.by == "run" && options.report.diff.empty();
  if (no_run) fmt::print(stderr, "luaspy: --by run needs --diff\n");
  const bool no_label = options.report.by_label() && !options.report.diff.empty();
  if (no_label) fmt::print(stderr, "luaspy: --diff compares by samples, time or run, not by {}\n", options.report.by);
  return lacks_file || no_run || no_time || no_label;
}

UsageCommand usage_of(const CLI::App& app) {
  UsageCommand command = {app.get_name(), app.get_description(), app.get_footer(), {}, {}, {}};
  while (command.footer.ends_with('\n')) command.footer.pop_back();
  for (const CLI::Option* const option : app.get_options()) {
    const std::vector<std::string> choices = choices_of(*option);
    if (option->get_positional()) {
      command.choices = choices;
      command.words = word_as_typed(*option);
      continue;
    }
    UsageOption& told = command.options.emplace_back();
    if (!option->get_snames().empty()) told.letter = option->get_snames().front();
    if (!option->get_lnames().empty()) told.word = option->get_lnames().front();
    if (option->get_items_expected_max() > 0) told.value = option->get_option_text();
    told.description = option->get_description();
    std::ranges::replace(told.description, '\n', ' ');
    told.choices = choices;
  }
  return command;
}

}  // namespace

Usage usage() {
  Options options;
  CLI::App app(about, "luaspy");
  add_commands(app, options);
  Usage usage = {std::string(version), about, examples, {}};
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    usage.commands.push_back(usage_of(*command));
  return usage;
}

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app(about, "luaspy");
  add_commands(app, options);
  std::vector<std::string> words = meant_words(app, {argv + std::min(argc, 1), argv + argc});
  std::string wrong = explain_wrong_option(app, words);
  if (wrong.empty()) {
    Result<std::vector<std::string>> all = with_configuration(app, words);
    if (all) words = std::move(*all);
    else wrong = all.error().text;
  }
  if (!wrong.empty()) {
    fmt::print(stderr, "luaspy: {}\n", wrong);
    exit_code = static_cast<int>(Cause::usage);
    return std::nullopt;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the end
  } catch (const CLI::Success& told) {
    exit_code = app.exit(told);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "luaspy: {}\n", explain(app, error, words));
    exit_code = static_cast<int>(Cause::usage);
    return std::nullopt;
  }
  static const std::map<std::string, Options::Command> commands = {{"record", Options::Command::record},
                                                                   {"report", Options::Command::report},
                                                                   {"top", Options::Command::top},
                                                                   {"dump", Options::Command::dump},
                                                                   {"heap", Options::Command::heap},
                                                                   {"alloc", Options::Command::alloc},
                                                                   {"ps", Options::Command::ps},
                                                                   {"doctor", Options::Command::doctor},
                                                                   {"jit", Options::Command::jit},
                                                                   {"view", Options::Command::view},
                                                                   {"push", Options::Command::push},
                                                                   {"agent", Options::Command::agent},
                                                                   {"completion", Options::Command::completion},
                                                                   {"manual", Options::Command::manual}};
  options.command = commands.at(app.get_subcommands().front()->get_name());
  options.record.shape.processes = options.record.subprocesses;
  if (lacks_target(options) || lacks_recording(options)) {
    exit_code = static_cast<int>(Cause::usage);
    return std::nullopt;
  }
  return options;
}

}  // namespace luaspy
