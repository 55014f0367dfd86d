#include "output/flamegraph.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/doubts.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "output/flamegraph_page.h"
#include "output/packed_recording.h"
#include "profile/amount_text.h"
#include "profile/heap_text.h"
#include "profile/mark_text.h"

namespace luaspy {
namespace {

// Weights in the page's units: time is in µs.
std::int64_t shown_weight(std::int64_t weight, Unit unit) { return unit == Unit::nanoseconds ? weight / 1000 : weight; }
std::string_view unit_word(Unit unit) { return unit == Unit::nanoseconds ? "time" : name(unit); }

using Numbers = std::vector<std::uint32_t>;

// Frames and stacks of all sets, with their own numbers: frames with the same texts are merged.
class Tables {
 public:
  using Moved = std::map<std::string, std::string>;

  explicit Tables(const Moved* moved) : moved_(moved) { string(""); }

  std::uint32_t string(const std::string& text) {
    const auto [place, added] = string_index_.emplace(text, static_cast<std::uint32_t>(strings_.size()));
    if (added) strings_.push_back(json_in_html(text));
    return place->second;
  }
  std::uint32_t frame(const Frame& frame) {
    const std::string text = describe(frame, false), at = describe(frame, true);
    const auto [place, added] = frame_index_.emplace(fmt::format("{}\n{}\n{}", text, at, static_cast<int>(frame.part)),
                                                     static_cast<std::uint32_t>(kinds_.size()));
    if (added) {
      const bool has_lines = frame.kind == Frame::Kind::lua;
      kinds_.push_back(static_cast<std::uint32_t>(frame.kind));
      parts_.push_back(static_cast<std::uint32_t>(frame.part));
      texts_.push_back(string(text));
      ats_.push_back(string(frame.line > 0 ? at : text));
      files_.push_back(string(frame.file));
      if (moved_ != nullptr) {
        const auto was = moved_->find(text);
        was_.push_back(was != moved_->end() ? string(was->second) : 0);
      }
      lines_.push_back(has_lines ? std::max(frame.line_defined, 0) : 0);
      currents_.push_back(has_lines && frame.line > 0 ? (frame.line_is_near ? -frame.line : frame.line) : 0);
    }
    return place->second;
  }
  std::uint32_t node(std::uint32_t outer, std::uint32_t frame) {
    const auto [place, added] = node_index_.emplace(std::uint64_t{outer} << 32 | frame,
                                                    static_cast<std::uint32_t>(outer_.size()));
    if (added) outer_.push_back(outer), frame_.push_back(frame);
    return place->second;
  }
  // The number of a set of labels; 0 is the empty one.
  std::uint32_t labels(const Labels& labels) {
    Numbers texts;
    for (const SampleLabel& label : labels) texts.push_back(string(label.name)), texts.push_back(string(label.value));
    const auto [place, added] = label_index_.emplace(texts, static_cast<std::uint32_t>(labels_.size()));
    if (added) labels_.push_back(std::move(texts));
    return place->second;
  }
  void write(std::ostream& out) const {
    if (labels_.size() > 1) {
      out << "\"labels\":[";
      for (std::size_t i = 0; i < labels_.size(); ++i)
        out << fmt::format("{}[{}]", i == 0 ? "" : ",", joined(labels_[i], ","));
      out << "],\n";
    }
    out << fmt::format("\"frames\":{{\"kind\":[{}],\n\"text\":[{}],\n", joined(kinds_, ","), joined(texts_, ","));
    out << fmt::format("\"part\":[{}],\n", joined(parts_, ","));
    out << fmt::format("\"at\":[{}],\n\"file\":[{}],\n", joined(ats_, ","), joined(files_, ","));
    if (moved_ != nullptr) out << fmt::format("\"was\":[{}],\n", joined(was_, ","));
    out << fmt::format("\"line\":[{}],\n\"current\":[{}]}},\n", joined(lines_, ","), joined(currents_, ","));
    // The empty stack has no frame.
    out << fmt::format("\"nodes\":{{\"outer\":[{}],\n\"frame\":[-1{}{}]}},\n\"strings\":[", joined(outer_, ","),
                       frame_.size() > 1 ? "," : "", joined(std::span(frame_).subspan(1), ","));
    for (std::size_t i = 0; i < strings_.size(); ++i) out << (i == 0 ? "" : ",\n") << strings_[i];
    out << ']';
  }

 private:
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::uint32_t> string_index_, frame_index_;
  const Moved* moved_;
  Numbers kinds_, parts_, texts_, ats_, files_, was_, outer_{0}, frame_{0};
  std::vector<int> lines_, currents_;
  std::unordered_map<std::uint64_t, std::uint32_t> node_index_;
  std::vector<Numbers> labels_{{}};  // by turns a name and a value: strings
  std::map<Numbers, std::uint32_t> label_index_{{{}, 0}};
};

// Writes one profile into the page.
class Set {
 public:
  Set(const Profile& profile, Tables& tables)
      : profile_(profile), tables_(tables), nodes_(profile.stacks().nodes().size()) {
    for (const Frame& frame : profile.frames()) frames_.add(tables.frame(frame));
    constexpr unsigned states = 3;  // Sample::State
    for (const Profile::Situation& situation : profile.situations()) {
      const unsigned state = states * static_cast<unsigned>(situation.vm_state) +
                             static_cast<unsigned>(situation.state);
      const std::uint32_t labels = tables.labels(profile.labels()[situation.labels]);
      situations_.push_back(
          fmt::format("{},{}", node_of(situation.stack), std::uint64_t{states * vm_state_count} * labels + state));
    }
  }

  // For time only: the weight of a run is its duration.
  void write_in_order(std::size_t thread, std::ostream& out) const {
    std::int64_t end_us = 0;
    bool first = true;
    profile_.timeline(thread).for_each([&](const Timeline::Run& run) {
      const std::int64_t start_us = run.start_ns / 1000;
      if (first) out << fmt::format("\"start\":{},\"runs\":[", start_us), end_us = start_us;
      out << fmt::format("{}{},{},{},{}", first ? "" : ",", situations_[run.situation], run.samples,
                         run.end_ns / 1000 - start_us, start_us - end_us);
      end_us = run.end_ns / 1000;
      first = false;
    });
    out << (first ? "\"start\":0,\"runs\":[]" : "]");
  }
  void write_counts(std::size_t thread, std::ostream& out) const {
    out << "\"start\":0,\"runs\":[";
    std::string_view separator;
    for (const auto& [of, amount] : profile_.counts()) {
      if (of.thread != thread) continue;
      out << separator
          << fmt::format("{},{},{},0", situations_[of.situation], amount.samples,
                         shown_weight(amount.weight, profile_.about.unit));
      separator = ",";
    }
    out << ']';
  }

 private:
  std::uint32_t node_of(StackId stack) {
    std::vector<StackId> inside;
    for (; stack != empty_stack && nodes_[stack] == 0; stack = profile_.stacks().nodes()[stack].outer)
      inside.push_back(stack);
    std::uint32_t node = nodes_[stack];
    for (auto next = inside.rbegin(); next != inside.rend(); ++next)
      nodes_[*next] = node = tables_.node(node, frames_[profile_.stacks().nodes()[*next].frame]);
    return node;
  }

  const Profile& profile_;
  Tables& tables_;
  ById<StackId, std::uint32_t> nodes_;  // 0: not known yet
  ById<FrameId, std::uint32_t> frames_;
  std::vector<std::string> situations_;  // by SituationId: a run's first two numbers
};

using Facts = std::vector<std::pair<std::string, std::string>>;

// Nothing of an instant, as a heap is one.
std::string duration_text(double seconds) {
  return seconds > 0 ? fmt::format(", {:.{}f} s", seconds, seconds < 10 ? 2 : 1) : "";
}

Facts facts_of(const Profile& profile) {
  const Metadata& about = profile.about;
  const StopTimes& stops = profile.stops();
  const double seconds = static_cast<double>(about.duration_ns) / 1e9,
               looked = static_cast<double>(about.looked_ns()) / 1e9;  // without pauses
  const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e3; };
  Facts facts;
  if (!about.kind.empty()) facts.emplace_back("Read from", about.kind);
  if (about.kind.empty() || about.pid != 0)
    facts.emplace_back("Process", fmt::format("{}{}{}{}", about.pid, about.executable.empty() ? "" : " (",
                                              about.executable, about.executable.empty() ? "" : ")"));
  if (!about.luas.empty()) facts.emplace_back("Lua", joined(about.luas, ", "));
  if (about.kind.empty() || about.started_s != 0)
    facts.emplace_back("Recorded", fmt::format("{} UTC{}{}{}", utc_text(about.started_s, "%Y-%m-%d %H:%M"),
                                               duration_text(seconds), about.complete ? "" : ", until it was cut off",
                                               about.kind.empty() ? ", by luaspy " + about.luaspy : ""));
  const auto& [sleepers, sleepers_ticks] = profile.sleepers();
  const std::int64_t idle = profile.idle() - sleepers_ticks;
  facts.emplace_back(
      "Samples",
      fmt::format("{} of {} thread{}{}{}", profile.samples(), profile.threads().size(),
                  profile.threads().size() == 1 ? "" : "s", idle == 0 ? "" : "; asleep at " + count_of(idle, "tick"),
                  sleepers == 0 ? ""
                                : fmt::format("; {} only seen asleep, at {}, and left out",
                                              count_of(sleepers, "thread"), count_of(sleepers_ticks, "tick"))));
  if (!about.torn.empty()) facts.emplace_back("Damaged", about.torn);
  if (about.unit != Unit::nanoseconds && about.unit != Unit::samples)
    facts.emplace_back("Total", amount_text(profile.weight(), about.unit));
  if (const std::string heap = heap_text(profile.heaps, about.duration_ns); !heap.empty())
    facts.emplace_back("Lua heap", heap);
  if (!profile.marks.empty()) facts.emplace_back("LuaJIT's compiler", marks_text(profile.marks));
  if (about.rate > 0 && about.ticks > 0)  // a heap has none
    facts.emplace_back("Rate", fmt::format("{:.1f} Hz of {:g} asked for",
                                           looked > 0 ? static_cast<double>(about.ticks) / looked : 0, about.rate));
  if (stops.count() != 0) {
    facts.emplace_back("Stood still",
                       fmt::format("{:.0f} µs median, {:.0f} µs at the 99th percentile, {:.2f} % of the time",
                                   microseconds(stops.quantile_ns(0.5)), microseconds(stops.quantile_ns(0.99)),
                                   percent(stops.total_ns(), about.duration_ns)));
  }
  if (profile.quality().stacks != 0) {
    facts.emplace_back("Stacks", fmt::format("{:.1f} % with Lua, native part complete {:.1f} %",
                                             percent(profile.quality().with_lua, profile.quality().stacks),
                                             percent(profile.quality().native_complete, profile.quality().stacks)));
  }
  if (about.kind.empty()) facts.emplace_back("Lost", losses_text(profile.losses()));
  if (about.mode != "merged") facts.emplace_back("Mode", about.mode);
  return facts;
}

// Each heap has its own picture if they are few; else there is one of all together.
void write_heaps(const HeapTracks& heaps, std::ostream& out) {
  constexpr std::size_t most_pictures = 4;
  std::string_view separator = ",\n\"heaps\":[";
  const auto write = [&](const std::string& name, const HeapTrack& track) {
    out << std::exchange(separator, ",\n") << "{\"name\":" << json_in_html(name) << ",\"points\":[";
    std::string_view comma;
    for (const HeapTrack::Point& point : track.points())
      out << std::exchange(comma, ",")
          << fmt::format("{},{},{},{},{},{}", point.start_ns / 1000, point.end_ns / 1000, point.last,
                         point.last - point.least, point.most - point.last,
                         8 * point.cycles + static_cast<int>(point.phase));
    out << "]}";
  };
  const std::size_t states = heaps.states().size();
  std::set<int> processes;
  for (const HeapTracks::Of& heap : heaps.states()) processes.insert(heap.state.pid);
  if (states > most_pictures) {
    write(fmt::format("Lua heap, {} states together", states), heaps.total());
  } else {
    for (std::size_t state = 0; state < states; ++state) {
      const HeapTracks::Of& heap = heaps.states()[state];
      write(heap_name(heaps, state) + (processes.size() > 1 ? fmt::format(" of process {}", heap.state.pid) : ""),
            heap.track);
    }
  }
  if (states == 0) return;
  out << "],\"phases\":[";
  for (std::size_t phase = 0; phase < collector_phase_count; ++phase)
    out << (phase == 0 ? "" : ",") << json_in_html(name(static_cast<CollectorPhase>(phase)));
  out << ']';
}

void write_marks(const std::vector<Mark>& marks, Tables& tables, std::ostream& out) {
  if (marks.empty()) return;
  std::string_view separator = ",\n\"marks\":{\"kinds\":[";
  for (std::size_t kind = 0; kind < mark_kinds; ++kind)
    out << std::exchange(separator, ",") << json_in_html(name(static_cast<Mark::Kind>(kind)));
  separator = "],\"list\":[";
  for (const Mark* const mark : in_order(marks)) {
    const std::uint32_t title = tables.string(title_of(*mark)), detail = tables.string(detail_of(*mark));
    out << std::exchange(separator, ",")
        << fmt::format("{},{},{},{}", mark->at_ns / 1000, static_cast<int>(mark->kind), title, detail);
  }
  out << "]}";
}

// Of samples that are not there.
void write_missing(const Profile& profile, std::ostream& out) {
  std::int64_t waiting = profile.waiting();
  for (const auto& [at, amount] : profile.counts()) {
    if (profile.situations()[at.situation].state == Sample::State::waiting) waiting -= amount.samples;
  }
  waiting = std::max<std::int64_t>(waiting, 0);
  if (profile.idle() + waiting + profile.total_losses() != 0)
    out << fmt::format(",\n\"missing\":[{},{},{}]", profile.idle(), waiting, profile.total_losses());
}

void write_set(const Profile& profile, Tables& tables, std::string_view label, bool in_order, std::ostream& out) {
  const Set set(profile, tables);
  out << "{\"label\":" << json_in_html(label) << ",\"target\":" << json_in_html(profile.about.command)
      << ",\"facts\":[";
  std::string_view separator;
  for (const auto& [name, value] : facts_of(profile)) {
    out << separator << '[' << json_in_html(name) << ',' << json_in_html(value) << ']';
    separator = ",";
  }
  out << ']';
  const std::vector<std::string> doubtful = doubts(profile.doubt_facts());
  for (std::size_t i = 0; i < doubtful.size(); ++i)
    out << (i == 0 ? ",\"doubts\":[" : ",") << json_in_html(doubtful[i]);
  if (!doubtful.empty()) out << ']';
  std::set<std::pair<int, std::uint64_t>> processes;
  for (const ThreadInfo& thread : profile.threads()) processes.emplace(thread.pid, thread.program);
  if (in_order && profile.charged() != 1) out << fmt::format(",\"charged\":{:.4f}", profile.charged());
  out << ",\n\"threads\":[";
  for (std::size_t i = 0; i < profile.threads().size(); ++i) {
    const ThreadInfo& thread = profile.threads()[i];
    out << (i == 0 ? "\n" : ",\n") << "{\"tid\":" << thread.tid << ",\"name\":" << json_in_html(thread.name)
        << ",\"process\":"
        << json_in_html(processes.size() < 2
                            ? ""
                            : fmt::format("{} {}", thread.pid == 0 ? profile.about.pid : thread.pid, thread.process))
        << ',';
    if (in_order) set.write_in_order(i, out);
    else set.write_counts(i, out);
    out << '}';
  }
  out << ']';
  if (in_order) write_heaps(profile.heaps, out);
  if (in_order) write_marks(profile.marks, tables, out);
  if (in_order) write_missing(profile, out);
  out << '}';
}

// Of files that are shown.
void write_sources(const Profile& profile, Tables& tables, std::ostream& out) {
  std::set<std::string_view> shown;
  for (const Frame& frame : profile.frames()) {
    if (frame.kind == Frame::Kind::lua) shown.insert(frame.file);
  }
  std::string_view separator = "\"sources\":[";
  for (const auto& [file, source] : profile.sources) {
    if (!shown.contains(file)) continue;
    out << separator << "{\"file\":" << tables.string(file) << ",\"changed\":" << (source.changed ? "true" : "false")
        << ",\"text\":" << json_in_html(source.text) << '}';
    separator = ",\n";
  }
  if (separator.front() == ',') out << "],\n";
}

void write_page(const std::vector<std::pair<std::string_view, const Profile*>>& sets, const std::string& comparison,
                const Tables::Moved* moved, const WriteOptions& options, std::ostream& out) {
  const Unit unit = sets.front().second->about.unit;
  const bool timed = sets.front().second->about.timed,
             in_order = comparison.empty() && unit == Unit::nanoseconds && timed;
  Tables tables(moved);
  out << flamegraph_head << "{\"version\":2,\n";
  if (options.lines) out << "\"lines\":true,\n";
  if (!timed) out << "\"untimed\":true,\n";
  out << "\"mode\":" << json_in_html(name(options.mode)) << ",\n\"nothing\":{";
  for (const Mode mode : {Mode::merged, Mode::lua}) {
    out << (mode == Mode::merged ? "" : ",") << json_in_html(name(mode)) << ':' << tables.frame(nothing_shown(mode));
  }
  out << "},\n";
  if (unit != Unit::nanoseconds) out << "\"unit\":" << json_in_html(unit_word(unit)) << ",\n";
  out << "\"states\":[";
  for (std::size_t state = 0; state < vm_state_count; ++state)
    out << (state == 0 ? "" : ",") << json_in_html(name(static_cast<VmState>(state)));
  out << "],\n" << comparison << "\"sets\":[";
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (i != 0) out << ",\n";
    write_set(*sets[i].second, tables, sets[i].first, in_order, out);
  }
  out << "],\n";
  write_sources(*sets.back().second, tables, out);
  tables.write(out);
  out << '}' << flamegraph_middle;
  write_packed(options.recording, out);
  out << flamegraph_tail;
}

}  // namespace

void write_flamegraph(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  write_page({{"", &profile}}, "", nullptr, options, out);
}

void write_flamegraph_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                           const WriteOptions& options, std::ostream& out) {
  const Unit unit = after.about.unit;
  const double scale = scale_of(comparison.by, before, after);
  std::string doubtful;
  for (const std::string& doubt : comparison.doubts)
    doubtful += (doubtful.empty() ? ",\"doubts\":[" : ",") + json_in_html(doubt);
  if (!doubtful.empty()) doubtful += ']';
  write_page({{"before", &before}, {"after", &after}},
             fmt::format("\"comparison\":{{\"by\":\"{}\",\"scale\":{},\"noise\":{:.3g},\"least_difference\":{},"
                         "\"least_ratio\":{}{}}},\n",
                         comparison.by == Compared::shares ? "shares" : unit_word(unit), scale, comparison.noise,
                         comparison.least_difference, comparison.least_ratio, doubtful),
             &comparison.moved, options, out);
}

}  // namespace luaspy
