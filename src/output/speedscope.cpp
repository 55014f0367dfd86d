#include "output/speedscope.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/json_text.h"

namespace luaspy {
namespace {

// speedscope sums entries with the same name, file and line: frames become such entries, numbered
// from 0.
class FrameTable {
 public:
  // The numbers of a profile's frames.
  ById<FrameId, std::size_t> add(const Profile& profile, bool lines) {
    ById<FrameId, std::size_t> numbers;
    for (const Frame& frame : profile.frames()) {
      const int line = lines ? frame.line : frame.line_defined;
      std::string entry = "{\"name\":" + json_text(describe(frame, lines));
      if (!frame.file.empty()) entry += ",\"file\":" + json_text(frame.file);
      if (frame.kind == Frame::Kind::lua && line > 0) entry += fmt::format(",\"line\":{}", line);
      entry += '}';
      const auto [place, added] = known_.emplace(entry, entries_.size());
      if (added) entries_.push_back(entry);
      numbers.add(place->second);
    }
    return numbers;
  }
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;  // JSON objects
  std::map<std::string, std::size_t> known_;
};

// The format's name of the unit. It has none for objects and samples: speedscope shows "none" as plain numbers.
std::string_view unit_of(const Profile& profile) {
  return profile.about.unit == Unit::objects || profile.about.unit == Unit::samples ? "none" : name(profile.about.unit);
}

// A profile, with its label and the numbers of its frames.
struct Shown {
  const Profile* profile;
  std::string label;
  ById<FrameId, std::size_t> frames;
};

void write_thread(const Shown& shown, std::size_t thread, std::ostream& out) {
  const Profile& profile = *shown.profile;
  const Timeline& timeline = profile.timeline(thread);
  std::int64_t total = 0;
  const auto weight = [&](const Timeline::Run& run) {
    return std::llround(static_cast<double>(run.weight) * profile.charged());
  };
  timeline.for_each([&](const Timeline::Run& run) { total += weight(run); });
  const ThreadInfo& about = profile.threads()[thread];
  out << "{\"type\":\"sampled\",\"name\":"
      << json_text(fmt::format("{}{} (thread {})", shown.label, about.name, about.tid)) << ",\"unit\":\""
      << unit_of(profile) << "\",\"startValue\":0,\"endValue\":" << total << ",\n\"samples\":[";
  std::string_view separator;
  timeline.for_each([&](const Timeline::Run& run) {
    out << std::exchange(separator, ",") << '[';
    const auto stack = profile.stack(profile.situations()[run.situation].stack);
    for (std::size_t frame = 0; frame < stack.size(); ++frame)
      out << (frame == 0 ? "" : ",") << shown.frames[stack[frame]];
    out << ']';
  });
  out << "],\n\"weights\":[";
  separator = {};
  timeline.for_each([&](const Timeline::Run& run) { out << std::exchange(separator, ",") << weight(run); });
  out << "]}";
}

void write_file(const std::string& name, const FrameTable& frames, const std::vector<Shown>& all, std::ostream& out) {
  out << "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"luaspy\",\"name\":"
      << json_text(name) << ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[";
  for (std::size_t i = 0; i < frames.entries().size(); ++i) out << (i == 0 ? "\n" : ",\n") << frames.entries()[i];
  out << "]},\n\"profiles\":[";
  std::string_view separator = "\n";
  for (const Shown& shown : all) {
    for (std::size_t thread = 0; thread < shown.profile->threads().size(); ++thread) {
      out << std::exchange(separator, ",\n");
      write_thread(shown, thread, out);
    }
  }
  out << "]}\n";
}

}  // namespace

void write_speedscope(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  FrameTable frames;
  const std::vector<Shown> all = {{&profile, "", frames.add(profile, options.lines)}};
  write_file(profile.about.command, frames, all, out);
}

void write_speedscope_diff(const Profile& before, const Profile& after, const Comparison&, const WriteOptions& options,
                           std::ostream& out) {
  FrameTable frames;
  std::vector<Shown> all = {{&before, "before: ", frames.add(before, options.lines)}};
  all.push_back({&after, "after: ", frames.add(after, options.lines)});
  write_file(before.about.command == after.about.command ? after.about.command
                                                         : before.about.command + " → " + after.about.command,
             frames, all, out);
}

}  // namespace luaspy
