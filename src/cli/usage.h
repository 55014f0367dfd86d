#pragma once
// A description of the command line, from which the manual page and the shell completions are made.

#include <string>
#include <vector>

namespace luaspy {

struct UsageOption {
  std::string letter, word;  // "p", "pid"; one may be empty
  std::string value;         // "PID"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  // all possible values; empty if they cannot be listed
};

struct UsageCommand {
  std::string name, description;
  std::string footer;  // notes and examples, or empty
  std::vector<UsageOption> options;
  std::string words;                 // what follows the options: "[-- COMMAND [ARGUMENT...]]", "FILE", or empty
  std::vector<std::string> choices;  // all possible values of `words`; empty if they cannot be listed
};

struct Usage {
  std::string version, about, footer;
  std::vector<UsageCommand> commands;
};

// Made from the options themselves (options.cpp).
Usage usage();

// Troff with the man macros: luaspy(1), which has everything, and luaspy-record(1) and so on, of a command.
std::string manual_page(const Usage& usage);
std::string manual_page(const Usage& usage, const UsageCommand& command);

enum class Shell { bash, zsh, fish };
// A script for the shell to source.
std::string completion(const Usage& usage, Shell shell);

}  // namespace luaspy
