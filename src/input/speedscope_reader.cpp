#include "input/speedscope_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/text.h"
#include "input/foreign_stacks.h"
#include "input/frame_text.h"
#include "input/raw_fields.h"
#include "input/value_unit.h"

namespace luaspy {
namespace {

std::string text_at(const Json& object, std::string_view key) {
  const std::string* const text = object.at(key).as_text();
  return text != nullptr ? *text : std::string();
}

// What a thread did for some time.
struct Spell {
  std::int64_t at = 0, weight = 0;  // in the unit of the profile
  ThreadId thread{};
  StackId stack = empty_stack;
};

class SpeedscopeReader {
 public:
  SpeedscopeReader(const Json& file, RecordingPart& part) : file_(file), part_(part), stacks_(part) {}

  Result<std::string> read() {
    part_.about().kind = "a file of speedscope";
    part_.about().command = printable(text_at(file_, "name"));
    const std::span<const Json> profiles = file_.at("profiles").elements();
    read_frames();
    unit_ = profiles.empty() ? ValueUnit{} : value_unit("", text_at(profiles.front(), "unit"));
    part_.count(unit_.unit);
    bool is_timed = !profiles.empty() && unit_.unit == Unit::nanoseconds;
    for (const Json& profile : profiles) {
      if (value_unit("", text_at(profile, "unit")).unit != unit_.unit)
        return Error{Cause::unsupported, "Its profiles count different things: luaspy reads files of one unit."};
      is_timed = is_timed && text_at(profile, "type") == "evented";
      if (wrong_.empty()) read_profile(profile);
    }
    part_.about().timed = is_timed;
    report();
    return wrong_;
  }

 private:
  void read_frames() {
    const bool is_of_luaspy = text_at(file_, "exporter") == "luaspy";
    for (const Json& each : file_.at("shared").at("frames").elements()) {
      const std::string name = text_at(each, "name"), file = text_at(each, "file");
      const auto line = static_cast<int>(
          std::clamp<std::int64_t>(each.at("line").as_integer().value_or(0), 0, std::numeric_limits<int>::max()));
      Frame frame;
      if (is_of_luaspy) frame = frame_of(name);
      else frame.name = name, frame.file = base_name(file);
      if (!is_of_luaspy && file.ends_with(".lua")) frame.kind = Frame::Kind::lua, frame.line_defined = line;
      if (frame.kind == Frame::Kind::lua) frame.line = line;
      if (is_of_luaspy && frame.kind != Frame::Kind::marker) frame.file = file;
      if (!is_of_luaspy && frame.kind == Frame::Kind::lua) frame.file = file;
      frames_.push_back(stacks_.frame(frame));
    }
  }

  void read_profile(const Json& profile) {
    const ThreadId thread = stacks_.thread(thread_of(profile));
    if (text_at(profile, "type") == "evented") read_events(profile, thread);
    else read_samples(profile, thread);
    ++profile_number_;
  }

  // luaspy names them "main (thread 12)".
  ThreadInfo thread_of(const Json& profile) const {
    ThreadInfo thread;
    thread.name = text_at(profile, "name");
    thread.tid = profile_number_;
    constexpr std::string_view number = " (thread ";
    const std::size_t at = thread.name.rfind(number);
    if (at == std::string::npos || !thread.name.ends_with(')')) return thread;
    thread.tid = std::atoi(thread.name.c_str() + at + number.size());
    thread.name.resize(at);
    return thread;
  }

  void read_samples(const Json& profile, ThreadId thread) {
    const std::span<const Json> samples = profile.at("samples").elements(), weights = profile.at("weights").elements();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (i >= weights.size()) return damaged(i, "sample", "it has no weight");
      const std::optional<std::int64_t> weight = scaled(weights[i]);
      if (!weight || *weight < 0) return damaged(i, "sample", "its weight is no time");
      StackId stack = empty_stack;
      if (!samples[i].is_array()) return damaged(i, "sample", "it is no list of frames");
      for (const Json& index : samples[i].elements()) {
        const std::optional<FrameId> frame = frame_at(index);
        if (!frame) return damaged(i, "sample", "it has a frame that the file does not have");
        stack = stacks_.stack(stack, *frame);
      }
      if (!stacks_.has_room()) return damaged(i, "sample", ForeignStacks::no_room);
      spells_.push_back({0, *weight, thread, stack});
    }
  }

  void read_events(const Json& profile, ThreadId thread) {
    const std::span<const Json> events = profile.at("events").elements();
    std::vector<FrameId> open;
    std::vector<StackId> stacks = {empty_stack};
    const std::int64_t start = scaled(profile.at("startValue")).value_or(0);
    std::int64_t last = start;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::optional<std::int64_t> at = scaled(events[i].at("at"));
      const std::optional<FrameId> frame = frame_at(events[i].at("frame"));
      if (!at || *at < last || !frame) return damaged(i, "event", "its time or its frame cannot be");
      if (*at > last && !open.empty()) spells_.push_back({*at - start, *at - last, thread, stacks.back()});
      last = *at;
      if (text_at(events[i], "type") == "O") {
        open.push_back(*frame);
        stacks.push_back(stacks_.stack(stacks.back(), *frame));
        if (!stacks_.has_room()) return damaged(i, "event", ForeignStacks::no_room);
      } else {
        if (open.empty() || open.back() != *frame)
          return damaged(i, "event", "it ends a call that is not the innermost");
        open.pop_back(), stacks.pop_back();
      }
    }
  }

  // Of several threads, in the order of time.
  void report() {
    std::ranges::stable_sort(spells_, {}, &Spell::at);
    std::int64_t now = 0;
    for (const Spell& spell : spells_) {
      Sample sample;
      sample.stack = spell.stack;
      const bool counts = unit_.unit == Unit::samples || unit_.unit == Unit::objects;
      const std::int64_t passed = part_.about().timed ? spell.at - now : 0;
      if (counts && spell.weight == 0) continue;
      if (!part_.tick(passed, spell.weight, counts ? spell.weight : 1) || !part_.sample(spell.thread, sample)) {
        wrong_ = "the sum of all weights is too large";
        return;
      }
      now += passed;
    }
  }

  std::optional<FrameId> frame_at(const Json& index) const {
    const std::optional<std::uint64_t> number = index.as_unsigned();
    return number && *number < frames_.size() ? std::optional(frames_[*number]) : std::nullopt;
  }

  std::optional<std::int64_t> scaled(const Json& value) const {
    const std::optional<std::int64_t> whole = value.as_integer();
    constexpr auto most = static_cast<std::int64_t>(any_number);  // so that differences fit
    if (whole && unit_.scale == 1 && *whole >= -most && *whole <= most) return whole;
    const std::optional<double> number = value.as_number();
    if (!number) return std::nullopt;
    const double scaled = *number * static_cast<double>(unit_.scale);
    return std::abs(scaled) < static_cast<double>(any_number) ? std::optional(std::llround(scaled)) : std::nullopt;
  }

  void damaged(std::size_t index, std::string_view what, std::string_view why) {
    wrong_ = fmt::format("{} {} of profile {}: {}", what, index, profile_number_, why);
  }

  const Json& file_;
  RecordingPart& part_;
  ForeignStacks stacks_;
  std::vector<FrameId> frames_;
  std::vector<Spell> spells_;
  ValueUnit unit_;
  int profile_number_ = 0;
  std::string wrong_;
};

}  // namespace

bool is_speedscope(const Json& file) { return file.find("profiles") != nullptr && file.find("shared") != nullptr; }

Result<std::string> read_speedscope(const Json& file, RecordingPart& part) {
  return SpeedscopeReader(file, part).read();
}

}  // namespace luaspy
