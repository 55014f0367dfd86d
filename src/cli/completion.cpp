#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "cli/usage.h"

namespace luaspy {
namespace {

bool takes_command(const UsageCommand& command) { return command.words.find("-- COMMAND") != std::string::npos; }
bool is_file(std::string_view value) { return value == "FILE"; }
// Of a heap, what every Lua has is listed, and what a snapshot has that is on the command line. A process is not asked:
// a key that completes may not stop it.
bool is_object(std::string_view value) { return value.starts_with("OBJECT"); }
bool is_of_heap(std::string_view value) { return is_object(value) || value == "CLASS"; }
constexpr std::string_view roots = "globals package.loaded registry";
// From the report of a snapshot: "#3" and the class, "0x5578c0" and the object.
constexpr std::string_view
    listing = R"(sed -nE 's/^.* (#[0-9]+)  (.*)$/\1\t\2/p; s/^ .*  (.*) at (0x[0-9a-f]+)$/\2\t\1/p')";
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
        const std::vector<std::string>& listed = option.choices;
        if (is_of_heap(option.value))
          values += fmt::format("    {}:{}) _luaspy_heap '{}'; return ;;\n", command.name, word,
                                is_object(option.value) ? roots : "");
        else if (listed.empty()) values += fmt::format("    {}:{}) {}; return ;;\n", command.name, word, answer);
        else
          values += fmt::format("    {}:{}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", command.name,
                                word, joined(listed, " "));
      }
    }
    cases += fmt::format("    {}) options='{}'; files={} ;;\n", command.name, joined(words, " "),
                         takes_files(command) ? "yes" : "");
  }
  return fmt::format(R"sh(# bash completion for luaspy
_luaspy_heap() {{
  local word file= id text start="${{current//\\/}}"
  start="${{start#[\'\"]}}"
  COMPREPLY=($(compgen -W "$1" -- "$current"))
  for word in "${{COMP_WORDS[@]}}"; do case "$word" in *.luaheap) [ -f "$word" ] && file="$word" ;; esac; done
  [ -n "$file" ] && [ -n "$(find "$file" -size -64M)" ] || return
  while IFS=$'\t' read -r id text; do
    case "$id" in
      '#'*) case "$text" in *[:=]*) ;; *) id="$text" ;; esac ;;
      *) [ -n "$1" ] || continue ;;
    esac
    [[ "$id" == "$start"* ]] || continue
    case "$current" in [\'\"]*) COMPREPLY+=("$id") ;; *) COMPREPLY+=("$(printf %q "$id")") ;; esac
  done < <(luaspy heap "$file" 2>/dev/null | {})
}}
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
                     listing, joined(names, " "), values, cases);
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
        if (is_of_heap(option.value)) value += is_object(option.value) ? "_luaspy_objects" : "_luaspy_classes";
        else if (!option.choices.empty()) value += fmt::format("({})", joined(option.choices, " "));
        else if (is_file(option.value)) value += "_files";
      }
      for (const std::string& word : spellings(option))
        cases += fmt::format(" \\\n        '{}[{}]{}'", word, zsh_text(option.description), value);
    }
    if (!command.choices.empty())
      cases += fmt::format(" \\\n        ':{}:({})'", command.name, joined(command.choices, " "));
    if (takes_command(command)) cases += " \\\n        '*::command: _normal'";
    else if (takes_files(command)) cases += " \\\n        '*:file:_files'";
    cases += "\n      ;;\n";
  }
  return fmt::format(R"sh(#compdef luaspy
_luaspy_heap() {{
  local -a found files
  local line
  for line in $words; do [[ $line == *.luaheap && -f $line ]] && files=($line(NLm-64)); done
  (( $#files )) && for line in ${{(f)"$(luaspy heap $files 2>/dev/null | {})"}}; do
    [[ $line == ${{~1}}* ]] && found+=("${{line%%$'\t'*}}:${{${{line#*$'\t'}}//:/\\:}}")
  done
  _describe 'class or object' found
}}
_luaspy_classes() {{ _luaspy_heap '[#]' }}
_luaspy_objects() {{ compadd {}; _luaspy_heap '' }}
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
                     listing, roots, commands, cases);
}

std::string fish(const Usage& usage) {
  std::string text = fmt::format(R"sh(# fish completion for luaspy
function __luaspy_heap
  for file in (string match -- '*.luaheap' (commandline -opc))
    test -f $file; and test -n "$(find $file -size -64M)"; and luaspy heap $file 2>/dev/null | {} | string match -r -- $argv[1]
  end
end
complete -c luaspy -f
)sh",
                                 listing);
  for (const UsageCommand& command : usage.commands) {
    text += fmt::format("complete -c luaspy -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        quotable(command.description));
    const std::string with = fmt::format("complete -c luaspy -n '__fish_seen_subcommand_from {}'", command.name);
    for (const UsageOption& option : command.options) {
      text += with;
      if (!option.letter.empty()) text += " -s " + option.letter;
      if (!option.word.empty()) text += " -l " + option.word;
      if (is_object(option.value)) text += fmt::format(" -x -a '{} (__luaspy_heap .+)'", roots);
      else if (is_of_heap(option.value)) text += " -x -a '(__luaspy_heap \"^#.+\")'";
      else if (!option.choices.empty()) text += fmt::format(" -x -a '{}'", joined(option.choices, " "));
      else if (!option.value.empty()) text += is_file(option.value) ? " -r -F" : " -x";
      text += fmt::format(" -d '{}'\n", quotable(option.description));
    }
    if (!command.choices.empty()) text += fmt::format("{} -a '{}'\n", with, joined(command.choices, " "));
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
