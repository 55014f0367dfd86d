#include "profile/mark_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {

std::string title_of(const Mark& mark) {
  std::string title(name(mark.kind));
  if (mark.kind == Mark::Kind::flush) return title;
  if (mark.kind == Mark::Kind::trace) title += fmt::format(" {}", mark.number);
  return mark.file.empty() ? title : fmt::format("{} {}:{}", title, mark.file, mark.line);
}

std::string detail_of(const Mark& mark) {
  const bool has_failed = mark.kind == Mark::Kind::abort || mark.kind == Mark::Kind::blacklisted;
  if (!has_failed || mark.number == 0) return mark.text;
  return fmt::format("{}{}failed attempts: {}", mark.text, mark.text.empty() ? "" : "; ", mark.number);
}

std::array<std::int64_t, mark_kinds> counts_of(const std::vector<Mark>& marks) {
  std::array<std::int64_t, mark_kinds> counts{};
  for (const Mark& mark : marks) ++counts[static_cast<std::size_t>(mark.kind)];
  return counts;
}

std::string marks_text(const std::vector<Mark>& marks) {
  constexpr std::array<std::array<std::string_view, 2>, mark_kinds> words = {
      {{"abort", "aborts"},
       {"place blacklisted", "places blacklisted"},
       {"flush", "flushes"},
       {"new trace", "new traces"}}};
  const std::array<std::int64_t, mark_kinds> counts = counts_of(marks);
  std::string text;
  for (std::size_t i = 0; i < mark_kinds; ++i) {
    if (counts[i] != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i], words[i][counts[i] != 1]);
  }
  return text;
}

std::vector<const Mark*> in_order(const std::vector<Mark>& marks) {
  std::vector<const Mark*> ordered;
  for (const Mark& mark : marks) ordered.push_back(&mark);
  std::ranges::stable_sort(ordered, {}, [](const Mark* mark) { return mark->at_ns; });
  return ordered;
}

}  // namespace luaspy
