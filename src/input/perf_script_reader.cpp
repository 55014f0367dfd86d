#include "input/perf_script_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "input/foreign_stacks.h"
#include "input/frame_text.h"
#include "input/line_reader.h"
#include "input/raw_fields.h"

namespace luaspy {
namespace {

// "lua5.4 30785/30786 [001] 63868.290648:   10101010 cpu-clock:ppp: "; the frame of a sample without a stack follows.
struct PerfSample {
  std::string_view command, event, frame;
  int pid = 0, tid = 0, cpu = -1;
  std::int64_t at_ns = 0, period = 1;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

template <typename Number>
bool is_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

// "30785" and "30785/30786".
bool read_ids(std::string_view word, PerfSample& sample) {
  const std::size_t slash = word.find('/');
  if (!is_number(word.substr(slash == std::string_view::npos ? 0 : slash + 1), sample.tid)) return false;
  sample.pid = sample.tid;
  return slash == std::string_view::npos || is_number(word.substr(0, slash), sample.pid);
}

bool read_time(std::string_view word, PerfSample& sample) {
  double seconds = 0;
  constexpr double most = 4e9;
  if (!word.ends_with(':') || !is_number(word.substr(0, word.size() - 1), seconds) || !(seconds < most)) return false;
  sample.at_ns = std::llround(seconds * 1e9);
  return true;
}

// What follows the thread: its CPU perhaps, the time, the period perhaps, and the event.
std::optional<PerfSample> after_thread(std::string_view rest, PerfSample sample) {
  std::string_view word = take_word(rest);
  if (word.size() > 2 && word.front() == '[' && is_number(word.substr(1, word.size() - 2), sample.cpu))
    word = take_word(rest);
  if (!read_time(word, sample)) return std::nullopt;
  word = take_word(rest);
  if (is_number(word, sample.period)) word = take_word(rest);
  if (!word.ends_with(':')) return std::nullopt;
  sample.event = word.substr(0, word.find(':'));  // without its modifiers
  sample.frame = trimmed(rest);
  return sample;
}

// A command may have spaces: the thread is the first number after which everything fits.
std::optional<PerfSample> sample_of(std::string_view line) {
  if (line.empty() || line.front() == '\t') return std::nullopt;  // that is a frame
  constexpr int most_words = 8;                                   // of a command, which has 15 bytes
  std::string_view rest = line;
  (void)take_word(rest);
  for (int i = 0; i < most_words && !rest.empty(); ++i) {
    const std::size_t end = static_cast<std::size_t>(rest.data() - line.data());
    PerfSample sample;
    const std::string_view word = take_word(rest);
    if (!read_ids(word, sample)) continue;
    sample.command = trimmed(line.substr(0, end));
    if (const std::optional<PerfSample> whole = after_thread(rest, sample)) return whole;
  }
  return std::nullopt;
}

// "	    55d0c0ffee10 luaV_execute+0x10 (/usr/bin/lua5.4)". An event of two words, as "cpu-clock: " with an address,
// looks alike, but is in a line that is not indented.
std::optional<Frame> perf_frame(std::string_view line) {
  line = trimmed(line);
  std::uint64_t address = 0;
  const std::string_view digits = line.substr(0, line.find(' '));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  std::string_view name = trimmed(line.substr(digits.size())), module;
  if (const std::size_t open = name.rfind(" ("); open != std::string_view::npos && name.ends_with(')')) {
    module = name.substr(open + 2, name.size() - open - 3);
    name = trimmed(name.substr(0, open));
  }
  if (const std::size_t offset = name.rfind("+0x"); offset != std::string_view::npos && offset != 0)
    name = name.substr(0, offset);
  Frame frame;
  frame.name = name.empty() ? "[unknown]" : name;
  const bool is_of_kernel = module.starts_with("[kernel") || module.starts_with("[guest.kernel");
  frame.file = is_of_kernel ? "[kernel]" : base_name(module);
  // "[ext4]" is a module of the kernel; "[vdso]" and "[unknown]" are none.
  if (is_of_kernel || (module.starts_with('[') && module != "[vdso]" && module != "[unknown]" && module != "[heap]" &&
                       module != "[stack]"))
    frame.kind = Frame::Kind::kernel;
  if (frame.file == "[unknown]") frame.file.clear();
  if (is_start_of_process(frame.name)) frame.part = Frame::Part::start;
  return frame;
}

class PerfScriptReader {
 public:
  PerfScriptReader(std::istream& in, RecordingPart& part) : lines_(in), part_(part), stacks_(part) {}

  std::string read() {
    while (const std::optional<std::string_view> line = lines_.next()) {
      if (line->starts_with('#')) continue;
      const std::optional<PerfSample> sample = sample_of(*line);
      const std::string wrong = line->empty() ? finish() : sample ? begin(*sample) : add_frame(*line);
      if (!wrong.empty()) return lines_.at(wrong);
    }
    if (const std::string wrong = finish(); !wrong.empty()) return lines_.at(wrong);
    return lines_.torn();
  }

 private:
  std::string begin(const PerfSample& sample) {
    if (std::string wrong = finish(); !wrong.empty()) return wrong;
    if (event_.empty()) choose(sample);
    at_ns_ = sample.at_ns, period_ = sample.period, cpu_ = sample.cpu;
    is_counted_ = sample.event == event_;
    if (is_counted_) {
      ThreadInfo thread;
      thread.tid = sample.tid, thread.pid = sample.pid, thread.name = sample.command, thread.process = sample.command;
      thread_ = stacks_.thread(std::move(thread));
    }
    is_open_ = true;
    return sample.frame.empty() ? std::string() : add_frame(sample.frame);
  }

  void choose(const PerfSample& sample) {
    event_ = sample.event;
    last_ns_ = sample.at_ns;
    is_time_ = event_ == "cpu-clock" || event_ == "task-clock";
    part_.count(is_time_ ? Unit::nanoseconds : Unit::samples);
    part_.about().timed = true;
    part_.about().kind = fmt::format("the text of perf script ({})", printable(event_));
    part_.about().command = printable(sample.command);
  }

  std::string add_frame(std::string_view line) {
    if (!is_open_) return "this is neither a sample of perf script nor a frame of one";
    const auto known = known_.find(line);
    constexpr std::size_t most_frames = 1 << 16;
    if (frames_.size() == most_frames) return "the stack has more than 65,536 frames";
    if (known != known_.end()) {
      frames_.push_back(known->second);
      return {};
    }
    const std::optional<Frame> frame = perf_frame(line);
    if (!frame) return "this is no frame of perf script";
    frames_.push_back(stacks_.frame(*frame));
    if (stacks_.has_room()) known_.emplace(line, frames_.back());
    return stacks_.has_room() ? std::string() : std::string(ForeignStacks::no_room);
  }

  std::string finish() {
    if (!std::exchange(is_open_, false)) return {};
    std::ranges::reverse(frames_);
    Sample sample;
    sample.stack = stacks_.stack(frames_);
    sample.cpu = static_cast<std::int16_t>(cpu_ <= std::numeric_limits<std::int16_t>::max() ? cpu_ : -1);
    frames_.clear();
    if (!is_counted_) return {};
    if (!stacks_.has_room()) return std::string(ForeignStacks::no_room);
    // Buffers of several CPUs are not always in order.
    const std::int64_t passed = std::max<std::int64_t>(at_ns_ - last_ns_, 0);
    last_ns_ += passed;
    if (!part_.tick(passed, is_time_ ? period_ : 1) || !part_.sample(thread_, sample))
      return "the sum of all periods is too large";
    return {};
  }

  LineReader lines_;
  RecordingPart& part_;
  ForeignStacks stacks_;
  std::map<std::string, FrameId, std::less<>> known_;  // by line
  std::string event_;
  bool is_time_ = false, is_open_ = false, is_counted_ = false;
  std::int64_t at_ns_ = 0, period_ = 1, last_ns_ = 0;
  int cpu_ = -1;
  ThreadId thread_{};
  std::vector<FrameId> frames_;  // of the sample that is being read, innermost first
};

}  // namespace

bool is_perf_script(std::string_view head) {
  for (int i = 0; i < 100 && !head.empty(); ++i) {
    const std::string_view line = head.substr(0, head.find('\n'));
    if (sample_of(line)) return true;
    if (!line.empty() && !line.starts_with('#')) return false;
    head.remove_prefix(std::min(line.size() + 1, head.size()));
  }
  return false;
}

Result<std::string> read_perf_script(std::istream& in, RecordingPart& part) {
  return PerfScriptReader(in, part).read();
}

}  // namespace luaspy
