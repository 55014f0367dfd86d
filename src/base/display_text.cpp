#include "base/display_text.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace luaspy {
namespace {

struct Character {
  std::string_view bytes;
  char32_t code = 0;
  int width = 0;  // -1: unknown
};

// While this exists, wcwidth() of this thread knows Unicode. The C library brings this locale with
// it; without it, every character counts as one column wide.
class UnicodeWidths {
 public:
  UnicodeWidths() {
    static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    known_ = unicode != nullptr;
    if (known_) before_ = uselocale(unicode);
  }
  UnicodeWidths(const UnicodeWidths&) = delete;
  UnicodeWidths& operator=(const UnicodeWidths&) = delete;
  ~UnicodeWidths() {
    if (known_) uselocale(before_);
  }
  int of(char32_t code) const { return code < 0x7f ? 1 : known_ ? wcwidth(static_cast<wchar_t>(code)) : 1; }

 private:
  bool known_ = false;
  locale_t before_{};
};

// `text` is well-formed UTF-8: printable() has made it so.
std::vector<Character> characters(std::string_view text) {
  const UnicodeWidths widths;
  std::vector<Character> all;
  while (!text.empty()) {
    const auto [length, known] = first_character(text);
    const char32_t code = known.value_or(U'\ufffd');
    all.push_back({text.substr(0, length), code, widths.of(code)});
    text.remove_prefix(length);
  }
  return all;
}

std::string joined(const std::vector<Character>& all, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += all[i].bytes;
  return text;
}

// How many characters from the start, or from the end, fit in `width` columns.
std::size_t count_first(const std::vector<Character>& all, int width) {
  std::size_t count = 0;
  while (count < all.size() && (width -= std::max(all[count].width, 0)) >= 0) ++count;
  return count;
}
std::size_t count_last(const std::vector<Character>& all, int width) {
  std::size_t count = 0;
  while (count < all.size() && (width -= std::max(all[all.size() - 1 - count].width, 0)) >= 0) ++count;
  // A combining character must not begin a text.
  while (count != 0 && all[all.size() - count].width == 0) --count;
  return count;
}

}  // namespace

std::string displayable(std::string_view text, Charset charset, std::size_t limit) {
  std::string safe = printable(text, limit);
  if (std::ranges::all_of(safe, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return safe;
  std::string result;
  bool begun = false;  // there is a character that a mark of width 0 can be attached to
  for (const Character& character : characters(safe)) {
    const bool stray = character.width < 0 || (character.width == 0 && !begun);
    if (character.code < 0x80) result += character.bytes;
    else if (charset == Charset::ascii) result += character.width == 0 ? "" : "?";
    else if (stray) result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.code));
    else result += character.bytes;
    begun = true;
  }
  return result;
}

std::string without_invisible(std::string_view text) {
  std::string result;
  for (const Character& character : characters(text)) {
    if (is_invisible(character.code)) result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.code));
    else result += character.bytes;
  }
  return result;
}

int columns(std::string_view text) {
  int sum = 0;
  for (const Character& character : characters(text)) sum += std::max(character.width, 0);
  return sum;
}

std::string fit(std::string_view text, int width, Cut cut, Charset charset) {
  const std::vector<Character> all = characters(text);
  int whole = 0;
  for (const Character& character : all) whole += std::max(character.width, 0);
  if (whole <= width) return std::string(text);
  if (width <= 0) return {};
  const std::string_view mark = charset == Charset::utf8 ? "…" : "..";
  const int room = width - (charset == Charset::utf8 ? 1 : 2);
  if (room <= 0) return joined(all, 0, count_first(all, width));
  const int right = cut == Cut::left ? room : cut == Cut::right ? 0 : room / 2;
  return joined(all, 0, count_first(all, room - right)) + std::string(mark) +
         joined(all, all.size() - count_last(all, right), all.size());
}

std::string fill(std::string_view text, int width, Cut cut, Charset charset) {
  std::string result = fit(text, width, cut, charset);
  result.append(static_cast<std::size_t>(std::max(0, width - columns(result))), ' ');
  return result;
}

Label fit(const Label& label, int width, Charset charset) {
  const int name = columns(label.name), place = columns(label.place);
  if (name + place <= width) return label;
  int place_room = std::min(place, std::max(width - name, width / 3));
  constexpr int least = 6;
  if (place_room < std::min(place, least)) place_room = 0;
  Label result;
  result.name = fit(label.name, width - place_room, Cut::middle, charset);
  const bool is_file = label.place.starts_with(" (") && label.place.ends_with(')');
  if (place_room == place || place_room == 0 || !is_file)
    result.place = fit(label.place, place_room, Cut::left, charset);
  else
    result.place = " (" +
                   fit(std::string_view(label.place).substr(2, label.place.size() - 3), place_room - 3, Cut::left,
                       charset) +
                   ")";
  return result;
}

}  // namespace luaspy
