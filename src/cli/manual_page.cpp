#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/usage.h"

namespace luaspy {
namespace {

// Escapes what troff would interpret: a backslash, a minus sign (otherwise a hyphen), and a dot or
// quote at the beginning of a line.
std::string escaped(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') result += "\\e";
    else if (c == '-') result += "\\-";
    else result += c;
    line_begins = c == '\n';
  }
  return result;
}

std::string option_head(const UsageOption& option) {
  std::string head;
  if (!option.letter.empty()) head += fmt::format("\\fB\\-{}\\fR", option.letter);
  if (!option.word.empty()) head += fmt::format("{}\\fB\\-\\-{}\\fR", head.empty() ? "" : ", ", escaped(option.word));
  if (!option.value.empty()) head += fmt::format(" \\fI{}\\fR", escaped(option.value));
  return head;
}

// As it is shown by --help, line by line.
std::string as_it_is(std::string_view text) { return fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(text)); }

std::string options_text(const UsageCommand& command) {
  std::string text;
  for (const UsageOption& option : command.options)
    text += fmt::format(".TP\n{}\n{}\n", option_head(option), escaped(option.description));
  return text;
}

// "luaspy record [options] [-- COMMAND]"
std::string synopsis(const UsageCommand& command) {
  return fmt::format(".B luaspy {}\n[\\fIoptions\\fR]{}{}\n", command.name, command.words.empty() ? "" : " ",
                     escaped(command.words));
}

std::string command_section(const UsageCommand& command) {
  std::string text = fmt::format(".SS luaspy {} [\\fIoptions\\fR]{}{}\n{}.\n", command.name,
                                 command.words.empty() ? "" : " ", escaped(command.words),
                                 escaped(command.description)) +
                     options_text(command);
  if (!command.footer.empty()) text += as_it_is(command.footer);
  return text;
}

std::string title(const std::string& name, const std::string& version) {
  return fmt::format(".TH {} 1 \"\" \"luaspy {}\" \"User Commands\"\n.SH NAME\n", name, escaped(version));
}

std::string environment() { return ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set, luaspy shows no colours.\n"; }

}  // namespace

std::string manual_page(const Usage& usage) {
  std::string text = title("LUASPY", usage.version) + "luaspy \\- profiler for running Lua programs\n.SH SYNOPSIS\n";
  for (const UsageCommand& command : usage.commands) text += synopsis(command) + ".br\n";
  text += fmt::format(".SH DESCRIPTION\n{}\n.SH COMMANDS\n", escaped(usage.about));
  for (const UsageCommand& command : usage.commands) text += command_section(command);
  text += ".SH EXAMPLES AND EXIT STATUS\n" + as_it_is(usage.footer) + environment() + ".SH SEE ALSO\n";
  for (const UsageCommand& command : usage.commands) text += fmt::format(".BR luaspy\\-{} (1),\n", command.name);
  return text + ".BR perf (1),\n.BR gdb (1),\n.BR lua (1)\n";
}

std::string manual_page(const Usage& usage, const UsageCommand& command) {
  std::string name = "LUASPY-" + command.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = title(escaped(name), usage.version) +
                     fmt::format("luaspy\\-{} \\- {}\n", command.name, escaped(command.description)) +
                     ".SH SYNOPSIS\n" + synopsis(command) + ".SH OPTIONS\n" + options_text(command);
  if (!command.footer.empty()) text += ".SH NOTES\n" + as_it_is(command.footer);
  const std::size_t statuses = usage.footer.find("Exit status:");
  if (statuses != std::string::npos) text += ".SH EXIT STATUS\n" + as_it_is(usage.footer.substr(statuses));
  return text + environment() + ".SH SEE ALSO\n.BR luaspy (1)\n";
}

}  // namespace luaspy
