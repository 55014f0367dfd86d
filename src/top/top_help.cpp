#include <fmt/format.h>

#include <array>

#include "top/top_scene.h"
#include "top/top_text.h"

namespace luaspy {

std::vector<TopLine> help_lines(const TopScene& scene) {
  static constexpr std::array<std::pair<const char*, const char*>, 16> keys = {{
      {"q, Ctrl-C", "quit; a program that was running continues"},
      {"1-5, s S", "sort by a column; by the next, the previous"},
      {"/", "show rows that match a pattern; Esc: all rows"},
      {"Enter", "callers and callees of the function; Esc: back"},
      {"d", "the stack and the source lines of the row"},
      {"t  P  l", "one row per thread; per process; per line"},
      {"v", "C and Lua, Lua only, or everything"},
      {"w", "shares of the last seconds, or of all the time"},
      {"o", "write what was seen to a file, as record does"},
      {"r", "reset: times start again at 0"},
      {"p", "pause the display; sampling goes on"},
      {"+  -", "refresh more or less often"},
      {"arrows, j k", "move; also PgUp, PgDn, Home, End"},
      {"", ""},
      {"%Own", "its own work; 100 %: one thread all the time"},
      {"%Total", "with what it calls; recursive calls count once"},
  }};
  std::vector<TopLine> lines(1);
  for (const auto& [key, what] : keys)
    lines.push_back({{{scene.margin() + fmt::format("{:<12} ", key), TopStyle::key}, {what}}});
  const auto fact = [&](std::string_view name, const std::string& text) {
    lines.push_back({{{scene.margin() + fmt::format("{:<12} ", name), TopStyle::key}, {text}}});
  };
  fact("lost", losses_text(scene.counts.losses));
  for (const std::string& doubt : doubts_of(scene.counts, scene.target)) fact("doubtful", doubt);
  return lines;
}

TopLine footer_line(const TopScene& scene) {
  const TopView& view = scene.view;
  TopLine line;
  const auto key = [&](const char* keys, const char* what) {
    if (line.width() + columns(keys) + columns(what) + 3 > scene.size.width) return;
    line.spans.push_back({line.spans.empty() ? scene.margin() : "  "});
    line.spans.push_back({keys, TopStyle::key});
    line.spans.push_back({std::string(" ") + what, TopStyle::dim});
  };
  if (view.is_editing_filter()) {
    key("Enter", "keep the filter"), key("Esc", "no filter");
  } else if (view.is_naming_file()) {
    key("Enter", "write"), key("Esc", "do not"), key("its ending", "chooses the format");
  } else if (view.page() == TopView::Page::help) {
    key("q", "quit"), key("any other key", "back");
  } else if (view.page() == TopView::Page::relations) {
    key("q", "quit"), key("?", "help"), key("Esc", "back"), key("Enter", "its callers and callees"), key("d", "stack"),
        key("w", "window"), key("p", "pause");
  } else {
    key("q", "quit"), key("?", "help"), key("Enter", "callers"), key("/", "filter"), key("s", "sort"),
        key("p", "pause"), key("d", "stack"), key("v", "view"), key("t", "threads");
    if (scene.target.processes > 1) key("P", "processes");
    key("l", view.grouping().lines ? "functions" : "lines"), key("o", "write"), key("r", "reset"), key("w", "window"),
        key("+-", "pace");
  }
  return line;
}

}  // namespace luaspy
