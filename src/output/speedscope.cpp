#include "output/speedscope.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "output/json_text.h"

namespace luaspy {
namespace {

// speedscope sums entries with the same name, file and line: frames become such entries, numbered
// from 0.
struct FrameTable {
  ById<FrameId, std::size_t> index;
  std::vector<std::string> entries;  // JSON objects
};

FrameTable make_frames(const Profile& profile, bool lines) {
  FrameTable table;
  std::map<std::string, std::size_t> known;
  for (const Frame& frame : profile.frames()) {
    const int line = lines ? frame.line : frame.line_defined;
    std::string entry = "{\"name\":" + json_text(describe(frame, lines));
    if (!frame.file.empty()) entry += ",\"file\":" + json_text(frame.file);
    if (frame.kind == Frame::Kind::lua && line > 0) entry += fmt::format(",\"line\":{}", line);
    entry += '}';
    const auto [place, added] = known.emplace(entry, table.entries.size());
    if (added) table.entries.push_back(entry);
    table.index.add(place->second);
  }
  return table;
}

// The format's name of the unit. It has none for objects: speedscope shows "none" as plain numbers.
std::string_view unit_of(const Profile& profile) {
  return profile.about.unit == Unit::objects ? "none" : name(profile.about.unit);
}

void write_thread(const Profile& profile, std::size_t thread, const FrameTable& frames, std::ostream& out) {
  const Timeline& timeline = profile.timeline(thread);
  std::int64_t total = 0;
  const auto weight = [&](const Timeline::Run& run) {
    return std::llround(static_cast<double>(run.weight) * profile.charged());
  };
  timeline.for_each([&](const Timeline::Run& run) { total += weight(run); });
  const ThreadInfo& about = profile.threads()[thread];
  out << "{\"type\":\"sampled\",\"name\":" << json_text(fmt::format("{} (thread {})", about.name, about.tid))
      << ",\"unit\":\"" << unit_of(profile) << "\",\"startValue\":0,\"endValue\":" << total << ",\n\"samples\":[";
  std::string_view separator;
  timeline.for_each([&](const Timeline::Run& run) {
    out << std::exchange(separator, ",") << '[';
    const auto stack = profile.stack(profile.situations()[run.situation].stack);
    for (std::size_t frame = 0; frame < stack.size(); ++frame)
      out << (frame == 0 ? "" : ",") << frames.index[stack[frame]];
    out << ']';
  });
  out << "],\n\"weights\":[";
  separator = {};
  timeline.for_each([&](const Timeline::Run& run) { out << std::exchange(separator, ",") << weight(run); });
  out << "]}";
}

}  // namespace

void write_speedscope(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  const FrameTable frames = make_frames(profile, options.lines);
  out << "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"luaspy\",\"name\":"
      << json_text(profile.about.command) << ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[";
  for (std::size_t i = 0; i < frames.entries.size(); ++i) out << (i == 0 ? "\n" : ",\n") << frames.entries[i];
  out << "]},\n\"profiles\":[";
  for (std::size_t thread = 0; thread < profile.threads().size(); ++thread) {
    out << (thread == 0 ? "\n" : ",\n");
    write_thread(profile, thread, frames, out);
  }
  out << "]}\n";
}

}  // namespace luaspy
