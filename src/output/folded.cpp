#include "output/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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

}  // namespace luaspy
