#include "system/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>

#include <clocale>
#include <cstdlib>
#include <string_view>

#include "system/calls.h"

namespace luaspy::system {

bool forbids_colours() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return no_colour != nullptr && *no_colour != '\0';
}

Charset charset_of_locale() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8" ? Charset::utf8 : Charset::ascii;
}

Terminal terminal_of(int file_descriptor) {
  Terminal terminal;
  terminal.is_one = is_terminal(file_descriptor);
  if (!terminal.is_one) return terminal;
  const char* const type = std::getenv("TERM");
  terminal.rewrites_lines = type != nullptr && *type != '\0' && std::string_view(type) != "dumb";
  terminal.colours = terminal.rewrites_lines && !forbids_colours();
  winsize size{};
  if (::ioctl(file_descriptor, TIOCGWINSZ, &size) == 0) terminal.width = size.ws_col;
  return terminal;
}

}  // namespace luaspy::system
