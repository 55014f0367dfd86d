#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/usage.h"

namespace luaspy {
namespace {

bool takes_command(const UsageCommand& command) { return command.words.find("-- COMMAND") != std::string::npos; }
bool is_file(std::string_view value) { return value == "FILE"; }
// The values that can be listed: all that there are, or of an object the names that every Lua has.
std::vector<std::string> values_of(const UsageOption& option) {
  if (option.value.starts_with("OBJECT")) return {"globals", "package.loaded", "registry"};
  return option.choices;
}
bool takes_files(const UsageCommand& command) { return command.words.find("FILE") != std::string::npos; }

std::vector<std::string> spellings(const UsageOption& option) {
  std::vector<std::string> words;
  if (!option.letter.empty()) words.push_back("-" + option.letter);
  if (!option.word.empty()) words.push_back("--" + option.word);
  return words;
}

// Escapes text for use within single quotes of a shell.
std::string quotable(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text;
}

std::string bash(const Usage& usage) {
  std::vector<std::string> names;
  std::string cases, values;
  for (const UsageCommand& command : usage.commands) {
    names.push_back(command.name);
    std::vector<std::string> words = command.choices;
    for (const UsageOption& option : command.options) {
      for (const std::string& word : spellings(option)) {
        words.push_back(word);
        if (option.value.empty()) continue;
        const std::string_view answer = is_file(option.value)
                                            ? "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))"
                                            : "COMPREPLY=()";
        const std::vector<std::string> listed = values_of(option);
        if (listed.empty()) values += fmt::format("    {}:{}) {}; return ;;\n", command.name, word, answer);
        else
          values += fmt::format("    {}:{}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", command.name,
                                word, fmt::join(listed, " "));
      }
    }
    cases += fmt::format("    {}) options='{}'; files={} ;;\n", command.name, fmt::join(words, " "),
                         takes_files(command) ? "yes" : "");
  }
  return fmt::format(R"sh(# bash completion for luaspy
_luaspy() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" options= files= i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [ "${{COMP_WORDS[i]}}" = -- ]; then
      if [ "$i" -eq "$((COMP_CWORD - 1))" ]; then COMPREPLY=($(compgen -c -- "$current")); else compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); fi
      return
    fi
  done
  case "$command:$previous" in
{}  esac
  case "$command" in
{}  esac
  if [ -n "$files" ] && [ "${{current#-}}" = "$current" ]; then compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return; fi
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}}
complete -F _luaspy luaspy
)sh",
                     fmt::join(names, " "), values, cases);
}

// In a description of _arguments, brackets end it and colons separate.
std::string zsh_text(std::string text) {
  std::string result;
  for (const char c : quotable(std::move(text))) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh(const Usage& usage) {
  std::string commands, cases;
  for (const UsageCommand& command : usage.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.description));
    cases += fmt::format("    {})\n      _arguments -S", command.name);
    for (const UsageOption& option : command.options) {
      std::string value;
      if (!option.value.empty()) {
        value = fmt::format(":{}:", zsh_text(option.value));
        if (const auto listed = values_of(option); !listed.empty())
          value += fmt::format("({})", fmt::join(listed, " "));
        else if (is_file(option.value)) value += "_files";
      }
      for (const std::string& word : spellings(option))
        cases += fmt::format(" \\\n        '{}[{}]{}'", word, zsh_text(option.description), value);
    }
    if (!command.choices.empty())
      cases += fmt::format(" \\\n        ':{}:({})'", command.name, fmt::join(command.choices, " "));
    if (takes_command(command)) cases += " \\\n        '*::command: _normal'";
    else if (takes_files(command)) cases += " \\\n        '*:file:_files'";
    cases += "\n      ;;\n";
  }
  return fmt::format(R"sh(#compdef luaspy
_luaspy() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[show help]' '--version[show the version]'
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
if [ "$funcstack[1]" = _luaspy ]; then _luaspy "$@"; else compdef _luaspy luaspy; fi
)sh",
                     commands, cases);
}

std::string fish(const Usage& usage) {
  std::string text = "# fish completion for luaspy\ncomplete -c luaspy -f\n";
  for (const UsageCommand& command : usage.commands) {
    text += fmt::format("complete -c luaspy -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        quotable(command.description));
    const std::string with = fmt::format("complete -c luaspy -n '__fish_seen_subcommand_from {}'", command.name);
    for (const UsageOption& option : command.options) {
      text += with;
      if (!option.letter.empty()) text += " -s " + option.letter;
      if (!option.word.empty()) text += " -l " + option.word;
      if (const auto listed = values_of(option); !listed.empty())
        text += fmt::format(" -x -a '{}'", fmt::join(listed, " "));
      else if (!option.value.empty()) text += is_file(option.value) ? " -r -F" : " -x";
      text += fmt::format(" -d '{}'\n", quotable(option.description));
    }
    if (!command.choices.empty()) text += fmt::format("{} -a '{}'\n", with, fmt::join(command.choices, " "));
    if (takes_command(command)) {
      text += fmt::format(
          "complete -c luaspy -n '__fish_seen_subcommand_from {}; and contains -- -- (commandline -opc)' -F -a "
          "'(__fish_complete_command)'\n",
          command.name);
    }
    if (takes_files(command)) text += with + " -F\n";
  }
  return text;
}

}  // namespace

std::string completion(const Usage& usage, Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash(usage);
    case Shell::zsh:
      return zsh(usage);
    case Shell::fish:
      break;
  }
  return fish(usage);
}

}  // namespace luaspy
