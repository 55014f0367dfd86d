#include "report/slower.h"

#include <fmt/format.h>

namespace luaspy {

std::vector<std::string> slower(const ProfileDiff& diff, double percent) {
  double whole = 0;
  for (const ProfileDiff::Row& row : diff.rows) whole += row.before;
  std::vector<std::string> texts;
  for (const ProfileDiff::Row& row : diff.rows) {
    const bool is_new = row.verdict == ProfileDiff::Verdict::appeared;
    if (row.verdict != ProfileDiff::Verdict::slower && !is_new) continue;
    const double more = 100 * (is_new ? row.after / whole : row.difference() / row.before);
    if (more > percent)
      texts.push_back(fmt::format("{} {}", row.after_text, is_new ? "(new)" : fmt::format("{:+.0f} %", more)));
  }
  return texts;
}

}  // namespace luaspy
