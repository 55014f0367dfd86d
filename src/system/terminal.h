#pragma once
// What the terminal behind a stream can show.

#include "base/display_text.h"

namespace luaspy::system {

struct Terminal {
  bool is_one = false;
  bool colours = false;         // it has colours, and the user does not forbid them
  bool rewrites_lines = false;  // it understands control sequences (ECMA-48)
  int width = 0;                // columns; 0: unknown, or no terminal
};
Terminal terminal_of(int file_descriptor);

// What the user's locale (LC_ALL, LC_CTYPE, LANG) can show.
Charset charset_of_locale();

// Whether the environment forbids colours (https://no-color.org: any value but an empty one).
bool forbids_colours();

}  // namespace luaspy::system
