#include "output/chrometrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "base/text_buffer.h"
#include "profile/function_table.h"
#include "profile/heap_text.h"
#include "profile/mark_text.h"
#include "profile/recorded.h"

namespace luaspy {
namespace {

// Numbers of tracks of states do not overlap with those of threads: they are larger than any thread
// id (proc(5): pid_max is at most 2^22).
constexpr int first_state_track = 1 << 23, first_coroutine_track = 1 << 24, first_request_track = 1 << 25;

std::string_view state_name(const Profile::Situation& situation) {
  switch (situation.state) {
    case Sample::State::sleeping:
      return "asleep";
    case Sample::State::waiting:
      return name(situation.state);
    case Sample::State::running:
      break;
  }
  return name(situation.vm_state);
}

class Writer {
 public:
  Writer(const Profile& profile, const WriteOptions& options, std::ostream& out)
      : profile_(profile), functions_(functions_of(profile, options.lines)), out_(out) {
    for (std::size_t i = 0; i < functions_.functions.size(); ++i) {
      constexpr std::array<std::string_view, 5> categories = {"lua", "c", "native", "marker", "kernel"};  // Frame::Kind
      const auto kind = static_cast<std::size_t>(functions_.functions[i].kind);
      names_.push_back(fmt::format("\"cat\":\"{}\",\"name\":{}", categories[kind], json_text(functions_.texts[i])));
    }
  }

  void write() {
    out_ << "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"what\":\"samples: a slice is what samples without a break "
            "have in common\"";
    std::set<std::string> told;  // the keys of an object must differ
    for (const auto& [name, value] : recorded(profile_)) {
      std::string key = name;
      for (int i = 2; !told.insert(key).second; ++i) key = fmt::format("{} {}", name, i);
      out_.put(",{}:{}", json_text(key), json_text(value));
    }
    out_ << "},\n\"traceEvents\":[";
    processes();
    for (std::size_t thread = 0; thread < profile_.threads().size(); ++thread) {
      const ThreadInfo& of = profile_.threads()[thread];
      const int pid = process_of(profile_, of);
      track(pid, of.tid, fmt::format("{} ({})", of.name, of.tid), 2 * thread);
      stacks(thread, pid, of.tid);
      track(pid, first_state_track + of.tid, fmt::format("{} ({}): state", of.name, of.tid), 2 * thread + 1);
      states(thread, pid, first_state_track + of.tid);
    }
    for (std::size_t at = 0; at < profile_.tracks.size(); ++at) coroutine(at);
    requests();
    for (std::size_t state = 0; state < profile_.heaps.states().size(); ++state) heap(state);
    for (const Mark* const each : in_order(profile_.marks)) mark(*each);
    out_ << "]}\n";
  }

 private:
  TextBuffer& event() { return out_ << std::exchange(separator_, ",\n"); }

  void metadata(std::string_view what, int pid, int tid, const std::string& args) {
    event().put("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{{}}}}}", pid, tid, what, args);
  }

  void processes() {
    std::map<int, std::vector<std::string>> commands;  // of each process, one after the other if it has executed others
    std::vector<int> order;
    for (const ThreadInfo& thread : profile_.threads()) {
      const int pid = process_of(profile_, thread);
      std::vector<std::string>& known = commands[pid];
      if (known.empty()) order.push_back(pid);
      const std::string& command = command_of(profile_, thread);
      if (std::ranges::find(known, command) == known.end()) known.push_back(command);
    }
    for (const int pid : order)
      metadata("process_name", pid, pid, "\"name\":" + json_text(joined(commands[pid], ", then ")));
  }

  void track(int pid, int tid, const std::string& name, std::size_t order) {
    metadata("thread_name", pid, tid, "\"name\":" + json_text(name));
    metadata("thread_sort_index", pid, tid, fmt::format("\"sort_index\":{}", order));
  }

  // Times are in µs.
  void slice(char phase, int pid, int tid, std::int64_t at_ns, std::string_view what = {}) {
    event().put("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03}{}{}}}", phase, pid, tid, at_ns / 1000,
                at_ns % 1000, what.empty() ? "" : ",", what);
  }

  // The slices of one track, of stacks in the order of time.
  class Slices {
   public:
    Slices(Writer& writer, int pid, int tid) : writer_(writer), pid_(pid), tid_(tid) {}
    // `apart`: it has nothing in common with the one before.
    void add(StackId stack, std::int64_t start_ns, std::int64_t end_ns, bool apart = false) {
      if (start_ns != end_ || apart) close(0);
      next_.clear();
      for (const FrameId id : writer_.profile_.stack(stack)) next_.push_back(writer_.functions_.of_frame[id]);
      const auto differs = std::ranges::mismatch(open_, next_);
      close(static_cast<std::size_t>(differs.in1 - open_.begin()));
      for (std::size_t depth = open_.size(); depth < next_.size(); ++depth)
        writer_.slice('B', pid_, tid_, start_ns, writer_.names_[next_[depth]]);
      std::swap(open_, next_);
      end_ = end_ns;
    }
    void close(std::size_t depth) {
      for (; open_.size() > depth; open_.pop_back()) writer_.slice('E', pid_, tid_, end_);
    }

   private:
    Writer& writer_;
    int pid_, tid_;
    std::vector<std::uint32_t> open_, next_;  // functions, outermost first
    std::int64_t end_ = 0;
  };

  void stacks(std::size_t thread, int pid, int tid) {
    Slices slices(*this, pid, tid);
    profile_.timeline(thread).for_each([&](const Timeline::Run& run) {
      slices.add(profile_.situations()[run.situation].stack, run.start_ns, run.end_ns);
    });
    slices.close(0);
  }

  // Where a coroutine waited.
  void coroutine(std::size_t at) {
    const SuspendedTrack& of = profile_.tracks[at];
    const int pid = of.pid != 0 ? of.pid : static_cast<int>(profile_.about.pid),
              tid = first_coroutine_track + static_cast<int>(at);
    track(pid, tid, title_of(of), 2 * profile_.threads().size() + at);
    Slices slices(*this, pid, tid);
    for (const SuspendedTrack::Wait& wait : of.waits) slices.add(wait.stack, wait.start_ns, wait.end_ns, true);
    slices.close(0);
  }

  // A part of a slow request's time.
  struct Part {
    StackId stack = empty_stack;
    std::int64_t start_ns = 0, end_ns = 0;
    bool waits = false;
  };

  // Each slow request has a track: what it worked at, what it was seen waiting for, and when it was not seen.
  void requests() {
    constexpr int most = 1 << 12;
    std::map<std::pair<int, std::string>, std::vector<Part>> all;  // by process and what it is called
    for (std::size_t thread = 0; thread < profile_.threads().size(); ++thread) {
      profile_.timeline(thread).for_each([&](const Timeline::Run& run) {
        const LabelsId labels = profile_.situations()[run.situation].labels;
        const std::string* const which = profile_.labels().find(labels, slow_label);
        if (which == nullptr || *which == other_values) return;
        all[{process_of(profile_, profile_.threads()[thread]), *which}].push_back(
            {profile_.situations()[run.situation].stack, run.start_ns, run.end_ns});
      });
    }
    for (auto& [of, parts] : all) std::ranges::sort(parts, {}, &Part::start_ns);
    for (const RequestWaits& of : profile_.request_waits) {
      std::vector<Part>& parts = all[{of.pid != 0 ? of.pid : static_cast<int>(profile_.about.pid), of.request}];
      add_waits(of.waits, parts);
    }
    int tid = first_request_track;
    for (const auto& [of, parts] : all) {
      if (tid == first_request_track + most) return;
      const auto& [pid, name] = of;
      if (parts.empty()) continue;
      track(pid, tid, name, 2 * profile_.threads().size() + profile_.tracks.size());
      slice('B', pid, tid, parts.front().start_ns, fmt::format("\"cat\":\"request\",\"name\":{}", json_text(name)));
      Slices slices(*this, pid, tid);
      for (const Part& part : parts) {
        if (part.waits) {
          slices.close(0);
          slice('B', pid, tid, part.start_ns, R"("cat":"state","name":"waits")");
        }
        slices.add(part.stack, part.start_ns, part.end_ns, part.waits);
        if (part.waits) {
          slices.close(0);
          slice('E', pid, tid, part.end_ns);
        }
      }
      slices.close(0);
      slice('E', pid, tid++, parts.back().end_ns);
    }
  }

  // What a request was seen waiting for fills the time between two parts in which it worked. `parts`: those, in order;
  // then also the others.
  static void add_waits(const std::vector<SuspendedTrack::Wait>& waits, std::vector<Part>& parts) {
    const std::size_t works = parts.size();
    auto first = waits.begin();
    for (std::size_t i = 0; i <= works; ++i) {
      const bool has_begin = i != 0, has_end = i != works;
      const std::int64_t begin_ns = has_begin ? parts[i - 1].end_ns : 0,
                         end_ns = has_end ? parts[i].start_ns : std::numeric_limits<std::int64_t>::max();
      first = std::find_if(first, waits.end(), [&](const auto& each) { return each.end_ns >= begin_ns; });
      for (auto wait = first; wait != waits.end() && wait->start_ns <= end_ns; ++wait) {
        const auto next = wait + 1;
        const bool has_next = next != waits.end() && next->start_ns <= end_ns;
        const std::int64_t from_ns = has_begin && wait == first ? begin_ns : std::max(begin_ns, wait->start_ns),
                           until_ns = has_next  ? next->start_ns
                                      : has_end ? end_ns
                                                : wait->end_ns;
        if (until_ns > from_ns) parts.push_back({wait->stack, from_ns, until_ns, true});
      }
    }
    std::ranges::stable_sort(parts, {}, &Part::start_ns);
  }

  void states(std::size_t thread, int pid, int tid) {
    std::string_view open;
    std::int64_t end = 0;
    const auto close = [&] {
      if (!open.empty()) slice('E', pid, tid, end);
      open = {};
    };
    profile_.timeline(thread).for_each([&](const Timeline::Run& run) {
      const Profile::Situation& situation = profile_.situations()[run.situation];
      const std::string_view state = state_name(situation);
      if (run.start_ns != end || state != open) {
        close();
        slice('B', pid, tid, run.start_ns, fmt::format("\"cat\":\"state\",\"name\":\"{}\"", state));
        open = state;
      }
      end = run.end_ns;
    });
    close();
  }

  // A counter belongs to a process. Those of one process have different names.
  void heap(std::size_t state) {
    const auto& [of, track] = profile_.heaps.states()[state];
    const std::string name = heap_name(profile_.heaps, state);
    const auto counter = [&, pid = of.pid](std::int64_t at_ns, const std::string& what, std::string_view unit,
                                           std::int64_t value) {
      slice('C', pid, pid, at_ns, fmt::format("\"name\":\"{}\",\"args\":{{\"{}\":{}}}", what, unit, value));
    };
    track.for_each_value([&](std::int64_t at_ns, std::int64_t bytes) { counter(at_ns, name, "bytes", bytes); });
    std::int64_t cycles = -1;
    for (const HeapTrack::Point& point : track.points()) {
      if (std::exchange(cycles, point.cycles) != point.cycles)
        counter(point.end_ns, name + ": collector cycles", "at least", point.cycles);
    }
  }

  // Of the whole process: which thread it was is not known.
  void mark(const Mark& mark) {
    std::string args;
    const auto add = [&](std::string_view key, const std::string& value) {
      args += fmt::format("{}\"{}\":{}", args.empty() ? "" : ",", key, value);
    };
    if (mark.kind == Mark::Kind::abort || mark.kind == Mark::Kind::blacklisted)
      add("failed attempts", std::to_string(mark.number));
    if (!mark.text.empty()) add(mark.kind == Mark::Kind::trace ? "link" : "why", json_text(mark.text));
    slice('i', mark.pid, mark.pid, mark.at_ns,
          fmt::format("\"s\":\"p\",\"cat\":\"compiler\",\"name\":{},\"args\":{{{}}}", json_text(title_of(mark)), args));
  }

  const Profile& profile_;
  FunctionTable functions_;
  std::vector<std::string> names_;  // by function: a slice's category and name
  TextBuffer out_;
  std::string_view separator_ = "\n";
};

}  // namespace

void write_chrometrace(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  Writer(profile, options, out).write();
}

}  // namespace luaspy
