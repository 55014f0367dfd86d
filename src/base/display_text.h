#pragma once
// Text of a target on a terminal: how wide it is, and what of it fits.

#include <string>
#include <string_view>

namespace luaspy {

enum class Charset { utf8, ascii };

// printable(), and nothing that is invisible or turns the direction of writing. In ASCII, what is
// not becomes "?".
std::string displayable(std::string_view text, Charset charset, std::size_t limit = 200);

// Columns of a terminal that `text`, which is displayable, takes. As wcwidth(3) of C.UTF-8 has it,
// whatever the user's locale.
int columns(std::string_view text);

enum class Cut { left, middle, right };
// `text` in at most `width` columns, cut on that side if it has to be, which "…" shows.
std::string fit(std::string_view text, int width, Cut cut, Charset charset);
// The same, with blanks at its end up to `width`.
std::string fill(std::string_view text, int width, Cut cut, Charset charset);

// A function as describe() has it: its name, and where it is (" (file:line)", " [C]").
struct Label {
  std::string name, place;
};
// In at most `width` columns. Of a place, its end says most; of a name, both its ends.
Label fit(const Label& label, int width, Charset charset);

}  // namespace luaspy
