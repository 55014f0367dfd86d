#include "input/frame_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <string>

namespace luaspy {
namespace {

bool takes_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "file:12", "file:~12", "file:12#2".
std::optional<Frame> lua_frame(std::string_view name, std::string_view place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  Frame frame;
  frame.kind = Frame::Kind::lua;
  frame.name = name, frame.file = place.substr(0, colon);
  std::string_view number = place.substr(colon + 1);
  frame.line_is_near = number.starts_with('~');
  if (frame.line_is_near) number.remove_prefix(1);
  if (!takes_number(number, frame.line) || frame.line == 0) return std::nullopt;
  if (number.starts_with('#')) {
    number.remove_prefix(1);
    if (!takes_number(number, frame.twin)) return std::nullopt;
  }
  if (!number.empty()) return std::nullopt;
  frame.line_defined = frame.line;
  frame.prototype = static_cast<std::uint32_t>(frame.twin);  // resolve_names() numbers twins by it
  frame.own_name = true;                                     // the text is that of a profile with resolved names
  return frame;
}

}  // namespace

bool is_start_of_process(std::string_view name) {
  static constexpr std::string_view names[] = {"_start", "start_thread", "clone", "__clone", "clone3", "__clone3"};
  return name.starts_with("__libc_start_") || std::ranges::find(names, name) != std::end(names);
}

Frame frame_of(std::string_view text) {
  constexpr std::string_view main_chunk = "main chunk", of_c = " [C]";
  const bool is_in_brackets = text.size() > 2 && ((text.front() == '[' && text.back() == ']') ||
                                                  (text.front() == '(' && text.back() == ')'));
  if (is_in_brackets && text.find(text.back()) + 1 == text.size()) return marker(std::string(text));
  Frame frame;
  if (text.size() > of_c.size() && text.ends_with(of_c)) {
    frame.kind = Frame::Kind::c, frame.name = text.substr(0, text.size() - of_c.size());
    return frame;
  }
  if (const std::size_t open = text.rfind(" ["); open != std::string_view::npos && open != 0 && text.ends_with(']') &&
                                                 text.find_first_of("./", open) == std::string_view::npos) {
    frame.kind = Frame::Kind::kernel, frame.name = text.substr(0, open), frame.file = text.substr(open + 1);
    return frame;
  }
  // Of "f ([string "a (b)"]:3)", the first one: names of functions have no parentheses, those of chunks may.
  if (const std::size_t open = text.find(" ("); open != std::string_view::npos && open != 0 && text.ends_with(')')) {
    const std::string_view name = text.substr(0, open), place = text.substr(open + 2, text.size() - open - 3);
    if (const std::optional<Frame> lua = lua_frame(name, place)) return *lua;
    frame.kind = name == main_chunk ? Frame::Kind::lua : Frame::Kind::native;
    frame.name = name, frame.file = place;
    return frame;
  }
  frame.name = text;
  return frame;
}

}  // namespace luaspy
