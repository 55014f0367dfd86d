#pragma once
// What the terminal behind a stream can show.

namespace luaspy::system {

struct Terminal {
  bool is_one = false;
  bool colours = false;  // it has colours, and the user does not forbid them
  int width = 0;         // columns; 0: unknown, or no terminal
};
Terminal terminal_of(int file_descriptor);

// Whether the environment forbids colours (https://no-color.org: any value but an empty one).
bool forbids_colours();

}  // namespace luaspy::system
