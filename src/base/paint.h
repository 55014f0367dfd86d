#pragma once
// Colours of text on a terminal. Text that is not for a terminal gets none.

#include <cstdint>
#include <string>
#include <string_view>

namespace luaspy {

enum class Ink : std::uint8_t { plain, heading, strong, dim, warning, hot, warm, c, value };

class Paint {
 public:
  explicit Paint(bool on = false) : on_(on) {}
  // `text` in that colour (ECMA-48, 8.3.117); unchanged if colours are off.
  std::string operator()(Ink ink, std::string_view text) const;
  // The colour of something that takes this share, in percent.
  static Ink of_share(double percent);

 private:
  bool on_;
};

// Breaks lines that are wider than `width` columns between words; what follows is indented by
// `hanging` columns more than the line. Colours take no columns. Words that are too long stay whole.
// 0: nothing is broken. `text` must be displayable() but for colours and line breaks.
std::string wrapped(std::string_view text, int width, int hanging = 4);

}  // namespace luaspy
