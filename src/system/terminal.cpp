#include "system/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>

#include "system/calls.h"

namespace luaspy::system {

bool forbids_colours() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return no_colour != nullptr && *no_colour != '\0';
}

Terminal terminal_of(int file_descriptor) {
  Terminal terminal;
  terminal.is_one = is_terminal(file_descriptor);
  if (!terminal.is_one) return terminal;
  const char* const type = std::getenv("TERM");
  terminal.colours = !forbids_colours() && type != nullptr && *type != '\0' && std::string_view(type) != "dumb";
  winsize size{};
  if (::ioctl(file_descriptor, TIOCGWINSZ, &size) == 0) terminal.width = size.ws_col;
  return terminal;
}

}  // namespace luaspy::system
