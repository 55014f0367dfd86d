#include "top/top_lines.h"

#include <algorithm>

#include "top/top_scene.h"

namespace luaspy {
namespace {

// No line is wider than the screen; the cursor's reaches its edge.
void cut(TopLine& line, int width, Charset charset) {
  int room = width;
  for (TopSpan& span : line.spans) {
    span.text = fit(span.text, room, Cut::right, charset);
    room -= columns(span.text);
  }
  if (line.selected) line.spans.push_back({std::string(static_cast<std::size_t>(std::max(room, 0)), ' ')});
}

}  // namespace

int TopLine::width() const {
  int width = 0;
  for (const TopSpan& span : spans) width += columns(span.text);
  return width;
}

std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size,
                              const TopPane& pane) {
  const TopScene scene = {view, counts, target, pane, size};
  const auto height = static_cast<std::size_t>(std::max(size.height, 1));
  std::vector<TopLine> lines = head_lines(scene);
  const std::size_t room = height > lines.size() + 1 ? height - lines.size() - 1 : 0;
  const bool is_help = view.page() == TopView::Page::help;
  for (TopLine& line : is_help ? help_lines(scene) : table_lines(scene, room)) lines.push_back(std::move(line));
  lines.resize(height - 1);
  lines.push_back(footer_line(scene));
  for (TopLine& line : lines) cut(line, size.width, view.charset());
  return lines;
}

}  // namespace luaspy
