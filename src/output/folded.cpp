#include "output/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "profile/function_table.h"

namespace luaspy {
namespace {

// The format has no escapes: a frame must not contain the separator.
std::string without_separator(std::string text) {
  std::ranges::replace(text, ';', ':');
  return text;
}

}  // namespace

void write_folded(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  ById<FrameId, std::string> frames;
  for (const Frame& frame : profile.frames()) frames.add(without_separator(describe(frame, options.lines)));
  std::map<std::string, std::int64_t> lines;
  for (const auto& [of, amount] : profile.counts()) {
    std::string line;
    if (options.threads) {
      const ThreadInfo& thread = profile.threads()[of.thread];
      line = without_separator(fmt::format("thread {} ({})", thread.name, thread.tid));
    }
    for (const FrameId id : profile.stack(profile.situations()[of.situation].stack))
      line += (line.empty() ? "" : ";") + frames[id];
    lines[line] += cost(amount, usual_by(profile.about.unit));
  }
  for (const auto& [line, count] : lines) out << line << ' ' << count << '\n';
}

void write_folded_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                       const WriteOptions& options, std::ostream& out) {
  const Unit unit = after.about.unit;
  const double in_ms = comparison.by != Compared::shares && unit == Unit::nanoseconds ? 1e-6 : 1;
  std::map<std::string, std::pair<double, double>> stacks;
  const auto add = [&](const Profile& profile, double scale, double std::pair<double, double>::*side) {
    for (const auto& [id, amount] : profile.stack_counts()) {
      std::string text;
      for (const FrameId frame : profile.stack(id))
        text += (text.empty() ? "" : ";") + without_separator(describe(profile.frames()[frame], options.lines));
      stacks[text].*side += scale * static_cast<double>(compared_amount(amount, comparison.by, unit));
    }
  };
  add(before, in_ms * scale_of(comparison.by, before, after), &std::pair<double, double>::first);
  add(after, in_ms, &std::pair<double, double>::second);
  for (const auto& [stack, counts] : stacks) {
    const auto first = std::llround(counts.first), second = std::llround(counts.second);
    if (first != 0 || second != 0) out << stack << ' ' << first << ' ' << second << '\n';
  }
}

}  // namespace luaspy
