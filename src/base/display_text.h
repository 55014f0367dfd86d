#pragma once
// Text from a target on a terminal: how wide it is, and how much of it fits.

#include <string>
#include <string_view>

namespace luaspy {

enum class Charset { utf8, ascii };

// printable(), also without what a terminal has no width for. With Charset::ascii, other characters
// become "?".
std::string displayable(std::string_view text, Charset charset, std::size_t limit = 200);
// The invisible characters (is_invisible()) of a whole text for a terminal, with colours and lines, made \uNNNN.
std::string without_invisible(std::string_view text);

// How many columns of a terminal `text`, which must be displayable, takes: by wcwidth(3) in
// C.UTF-8, whatever the user's locale.
int columns(std::string_view text);

enum class Cut { left, middle, right };
// `text` in at most `width` columns; if it is too wide, it is cut on that side and marked with "…".
std::string fit(std::string_view text, int width, Cut cut, Charset charset);
// The same, padded with blanks at its end up to `width`.
std::string fill(std::string_view text, int width, Cut cut, Charset charset);

// A function as describe() has it: its name, and where it is (" (file:line)", " [C]").
struct Label {
  std::string name, place;
};
// In at most `width` columns. The end of a place and both ends of a name say most, and are kept.
Label fit(const Label& label, int width, Charset charset);

}  // namespace luaspy
