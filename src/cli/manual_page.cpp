#include <fmt/format.h>

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

std::string command_section(const UsageCommand& command) {
  std::string text = fmt::format(".SS luaspy {} [\\fIoptions\\fR]{}{}\n{}.\n", command.name,
                                 command.words.empty() ? "" : " ", escaped(command.words),
                                 escaped(command.description));
  for (const UsageOption& option : command.options)
    text += fmt::format(".TP\n{}\n{}\n", option_head(option), escaped(option.description));
  if (!command.footer.empty()) text += as_it_is(command.footer);
  return text;
}

}  // namespace

std::string manual_page(const Usage& usage) {
  std::string text = fmt::format(".TH LUASPY 1 \"\" \"luaspy {}\" \"User Commands\"\n", escaped(usage.version));
  text += ".SH NAME\nluaspy \\- profiler for running Lua programs\n.SH SYNOPSIS\n";
  for (const UsageCommand& command : usage.commands) {
    text += fmt::format(".B luaspy {}\n[\\fIoptions\\fR]{}{}\n.br\n", command.name, command.words.empty() ? "" : " ",
                        escaped(command.words));
  }
  text += fmt::format(".SH DESCRIPTION\n{}\n.SH COMMANDS\n", escaped(usage.about));
  for (const UsageCommand& command : usage.commands) text += command_section(command);
  text += ".SH EXAMPLES AND EXIT STATUS\n" + as_it_is(usage.footer);
  text +=
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set, top shows no colours.\n.SH SEE ALSO\n.BR perf (1),\n.BR gdb "
      "(1),\n.BR lua (1)\n";
  return text;
}

}  // namespace luaspy
