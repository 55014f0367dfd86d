#include "input/raw_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "input/page_recording.h"
#include "input/raw_fields.h"
#include "profile/profile_builder.h"
#include "profile/raw_format.h"

namespace luaspy {
namespace {

constexpr std::int64_t last_second = 253'402'300'799;  // of the year 9999: later ones have no date

constexpr std::size_t longest_name = 1 << 12;  // bytes, of a frame
constexpr std::size_t most_text = 1 << 27, most_threads = 1 << 17;

class RawReader {
 public:
  RawReader(std::uint8_t version, const ViewOptions& shape, const RawWindow& window, bool keeps_order,
            RawEvents* events)
      : version_(version),
        window_(window),
        events_(events),
        mode_(shape.mode),
        built_(tables_, shape, keeps_order),
        built_of_allocations_(tables_, shape, false) {}

  // False if the block is damaged (the records before the damage count), or if refused() says why
  // it cannot be read.
  bool read_block(std::string_view block) {
    for (Fields fields(block); !fields.empty();) {
      const std::uint64_t type = fields.number();
      const std::string_view body = fields.bytes(fields.number());
      if (!fields.good() || !read_record(type, body)) return false;
    }
    return true;
  }

  const std::optional<Error>& refused() const { return refused_; }

  Profile finish(bool whole) {
    begin_window();
    built_.finish();
    Metadata& about = profile_.about;
    about.duration_ns = std::max(about.duration_ns, tick_.at_ns);
    if (!about.complete || !whole || about.ticks == 0) about.ticks += ticks_;
    about.sampled_ns = std::min(about.sampled_ns, about.duration_ns);
    if (takes_allocations_) {
      about.ticks = std::exchange(about.allocations, 0);
      about.sampled_ns = about.duration_ns - about.looked_ns();
    }
    if (window_.from_ns > 0 || window_.to_ns) {
      // The file does not list ticks at which all threads slept: they are assumed to be evenly
      // distributed.
      const std::int64_t all_ns = about.duration_ns;
      about.duration_ns = std::max<std::int64_t>(std::min(window_.to_ns.value_or(all_ns), all_ns) - window_.from_ns, 0);
      about.cpu = {.system_share = about.cpu.system_share};  // the rest is of the whole recording
      about.sampled_cpu_ns = 0;
      if (all_ns > 0) {
        const double part = static_cast<double>(about.duration_ns) / static_cast<double>(all_ns);
        for (std::int64_t* const number : {&about.ticks, &about.sampled_ns, &about.allocations})
          *number = static_cast<std::int64_t>(std::llround(static_cast<double>(*number) * part));
      }
    }
    about.complete = about.complete && whole;
    if (about.mode != name(Mode::native)) about.mode = name(mode_);
    profile_.charge_pauses();
    if (events() != nullptr) events_->end(profile_);
    return std::move(profile_);
  }

 private:
  struct KnownThread {
    ThreadId id{};
    bool asked_for = false;
    std::int16_t cpu = -1;
    Quality quality, of_allocations;
  };
  // A global_State. What was before the window is shown at its beginning.
  struct KnownHeap {
    HeapChanges::State state;
    std::optional<std::uint32_t> index;  // in the profile
    std::optional<HeapChange> before;
    std::int64_t bytes = 0;
  };

  bool read_record(std::uint64_t type, std::string_view body) {
    const Fields fields(body);
    switch (type) {
      case raw::about:
        return read_about(fields);
      case raw::string:
        return read_string(body);
      case raw::frame:
        return read_frame(fields);
      case raw::stack:
        return read_stack(fields);
      case raw::thread:
        return read_thread(fields);
      case raw::tick:
        return knows_unit() && read_tick(fields);
      case raw::sample:
        return knows_unit() && read_sample(fields);
      case raw::loss:
        return read_loss(fields);
      case raw::idle:
        return read_idle(fields);
      case raw::waiting:
        return read_waiting(fields);
      case raw::source:
        return read_source(fields);
      case raw::state:
        return read_state(fields);
      case raw::heap:
        return knows_unit() && read_heap(fields);
      case raw::allocation:
        return knows_unit() && read_allocation(fields);
      default:
        return true;
    }
  }

  bool read_about(Fields fields) {
    const std::string_view key = fields.text(), value = fields.text();
    if (!fields.good()) return false;
    Metadata& about = profile_.about;
    const auto number = [&value] {
      std::int64_t result = 0;
      std::from_chars(value.data(), value.data() + value.size(), result);
      return std::clamp<std::int64_t>(result, 0, any_number);
    };
    const std::string text = printable(value, raw::longest_string);
    if (key == "luaspy") about.luaspy = text;
    else if (key == "command") about.command = text;
    else if (key == "executable") about.executable = text;
    else if (key == "mode") about.mode = text;
    else if (key == "pid") about.pid = number();
    else if (key == "started_s") about.started_s = std::min(number(), last_second);
    else if (key == "duration_ns") about.duration_ns = number();
    else if (key == "ticks") about.ticks = number(), ticks_ = 0;
    else if (key == "allocations") about.allocations = number();
    else if (key == "sampled_ns") about.sampled_ns = number();
    else if (key == "complete") about.complete = number() != 0;
    else if (key == "rate_hz") read_fraction(value, 1e9, about.rate);
    else if (key == "max_stopped_percent") read_fraction(value, 100, about.max_stopped);
    else if (key == "luas") read_luas(value);
    else if (key == "system_share") read_fraction(value, 1, about.cpu.system_share);
    else if (key == "lua_cpu_ns") about.cpu.lua_ns = number();
    else if (key == "other_cpu_ns") about.cpu.other_ns = number();
    else if (key == "unknown_cpu_ns") about.cpu.unknown_ns = number();
    else if (key == "sampled_cpu_ns") about.sampled_cpu_ns = number();
    else if (key == "lua_mapped") about.lua_mapped = number() != 0;
    else if (key == raw::unit_key && version_ > raw::first_version) return read_unit(value);
    return true;
  }

  bool knows_unit() const { return version_ == raw::first_version || unit_known_; }

  // The unit never changes: earlier counts would change their meaning.
  bool read_unit(std::string_view value) {
    if (unit_known_) return value == name(unit_);
    for (std::size_t i = 0; i < unit_count; ++i) {
      if (name(static_cast<Unit>(i)) != value) continue;
      unit_ = static_cast<Unit>(i);
      takes_allocations_ = window_.allocations && unit_ == Unit::nanoseconds;
      profile_.about.unit = takes_allocations_ ? *window_.allocations : unit_;
      return unit_known_ = true;
    }
    refused_ = Error{Cause::unsupported,
                     fmt::format("This raw recording counts {}; this luaspy knows nanoseconds, bytes and objects.",
                                 printable(value))};
    return false;
  }

  // Leaves `fraction` as it is unless the value is a possible number.
  static void read_fraction(std::string_view value, double most, double& fraction) {
    double number = -1;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (number >= 0 && number <= most) fraction = number;
  }

  void read_luas(std::string_view lines) {
    profile_.about.luas.clear();
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      profile_.about.luas.push_back(printable(line));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    }
  }

  bool read_string(std::string_view text) {
    if (text.size() > raw::longest_string) return false;
    strings_.push_back(printable(text, raw::longest_string));
    return has_room_for(sizeof(std::string) + strings_.back().size());
  }

  bool read_frame(Fields fields) {
    const std::uint64_t kind = fields.number(63), part = kind >> raw::part_shift;
    const std::string &name = string(fields), &file = string(fields);
    Frame frame = {static_cast<Frame::Kind>(kind & 7),
                   printable(name, longest_name),
                   printable(file, longest_name),
                   fields.small_number(),
                   fields.small_number(),
                   (kind & raw::line_is_near) != 0};
    if (frame.kind > Frame::Kind::marker) return false;
    if (!fields.empty())
      frame.prototype = static_cast<std::uint32_t>(fields.number(std::numeric_limits<std::uint32_t>::max()));
    if (!fields.empty()) {
      const std::uint64_t flags = fields.number();
      frame.own_name = (flags & raw::own_name) != 0;
      if ((flags & raw::in_kernel) != 0 && frame.kind == Frame::Kind::native) frame.kind = Frame::Kind::kernel;
    }
    if (part > static_cast<std::uint64_t>(Frame::Part::start)) return false;
    frame.part = static_cast<Frame::Part>(part);
    if (!fields.good() || !has_room_for(name.size() + file.size())) return false;
    frames_.push_back(tables_.stacks.intern(frame));
    return true;
  }

  bool read_stack(Fields fields) {
    const std::uint32_t outer = fields.index(nodes_.size()), frame = fields.index(frames_.size());
    if (!fields.good()) return false;
    nodes_.push_back(tables_.stacks.intern({nodes_[outer], frames_[frame]}));
    return true;
  }

  bool read_thread(Fields fields) {
    ThreadInfo thread;
    thread.tid = fields.small_number();
    thread.pid = fields.small_number();
    thread.name = string(fields), thread.process = string(fields);
    if (!fields.empty()) thread.program = fields.number();
    if (!fields.empty()) thread.started = fields.signed_number();
    if (!fields.good() || threads_.size() == most_threads || !has_room_for(thread.name.size() + thread.process.size()))
      return false;
    KnownThread& known = threads_.emplace_back();
    known.id = tables_.threads.intern(thread);
    known.asked_for = window_.thread.empty() || thread.name.find(window_.thread) != std::string::npos ||
                      std::to_string(thread.tid) == window_.thread;
    return true;
  }

  bool read_tick(Fields fields) {
    const std::int64_t passed = fields.signed_number();
    tick_.weight = fields.empty() ? passed : fields.signed_number();
    if (!fields.good() || static_cast<std::uint64_t>(tick_.at_ns + passed) > any_number) return false;
    tick_.at_ns += passed;
    // In bytes and objects, samples of one tick have different weights, and each has its own tick
    // record.
    ticks_ += passed != 0 || unit_ == Unit::nanoseconds;
    if (events_ != nullptr && is_in_window()) begin_window();  // events come in the order of time
    return true;
  }

  bool read_sample(Fields fields) {
    const std::uint32_t thread = fields.index(threads_.size());
    const std::uint64_t flags = fields.number();
    const bool has_loss = (flags & raw::has_loss) != 0;
    const std::uint32_t what = has_loss ? fields.index(loss_count) : fields.index(nodes_.size());
    const std::uint64_t vm_state = flags >> raw::vm_state_shift;
    if (!fields.good() || vm_state >= vm_state_count) return false;
    Sample facts;
    facts.state = (flags & raw::asleep) != 0 ? Sample::State::sleeping : Sample::State::running;
    facts.vm_state = static_cast<VmState>(vm_state);
    if (has_loss) facts.loss = static_cast<Loss>(what);
    if ((flags & raw::has_stop) != 0) facts.stopped_ns = fields.signed_number();
    if (!add_up(facts.stopped_ns) || !add_up(tick_.weight)) return false;
    KnownThread& known = threads_[thread];
    if ((flags & raw::has_quality) != 0) read_quality(fields, known.quality);
    if (!fields.empty() && fields.number() == raw::waits_for_cpu && facts.state == Sample::State::sleeping)
      facts.state = Sample::State::waiting;
    if (!fields.empty()) known.cpu = static_cast<std::int16_t>(fields.number(std::numeric_limits<std::int16_t>::max()));
    if (facts.state != Sample::State::sleeping) facts.cpu = known.cpu;
    if (!fields.good() || (has_loss && what == 0)) return false;
    if (!has_loss) facts.quality = known.quality;
    if (takes_allocations_ || !known.asked_for || !is_in_window()) return true;
    if (!has_loss) {
      facts.stack = nodes_[what], add(known, tick_, facts);
      return true;
    }
    built_.lose(known.id, facts.loss, facts.stopped_ns);
    if (events() != nullptr) events_->lost(known.id, of_window(tick_), facts.loss, facts.stopped_ns);
    return true;
  }

  static void read_quality(Fields& fields, Quality& quality) {
    for (std::size_t i = 0; i < quality_numbers.size(); ++i)
      quality.*quality_numbers[i] = i >= first_quality_numbers && fields.empty() ? 0 : fields.small_number();
  }

  bool read_allocation(Fields fields) {
    const std::uint32_t thread = fields.index(threads_.size());
    const std::uint64_t flags = fields.number(), vm_state = flags >> raw::vm_state_shift;
    const std::uint32_t stack = fields.index(nodes_.size());
    const std::int64_t passed = fields.signed_number(), bytes = fields.signed_number(),
                       objects = fields.signed_number();
    if (!fields.good() || vm_state >= vm_state_count || static_cast<std::uint64_t>(tick_.at_ns + passed) > any_number)
      return false;
    Sample facts;
    facts.vm_state = static_cast<VmState>(vm_state);
    if ((flags & raw::has_stop) != 0) facts.stopped_ns = fields.signed_number();
    KnownThread& known = threads_[thread];
    if ((flags & raw::has_quality) != 0) read_quality(fields, known.of_allocations);
    if (!fields.good()) return false;
    facts.quality = known.of_allocations;
    facts.stack = nodes_[stack];
    const std::int64_t at_ns = tick_.at_ns + passed;
    if (!takes_allocations_) {
      if (known.asked_for && is_in_window(at_ns) && events() != nullptr &&
          built_of_allocations_.add(known.id, {at_ns, bytes}, facts))
        events_->allocation(known.id, at_ns - window_.from_ns, bytes, objects, facts);
      return true;
    }
    const Tick tick = {at_ns, profile_.about.unit == Unit::objects ? objects : bytes};
    if (!add_up(facts.stopped_ns) || !add_up(tick.weight)) return false;
    if (known.asked_for && is_in_window(tick.at_ns)) add(known, tick, facts);
    return true;
  }

  void add(const KnownThread& known, const Tick& at, const Sample& sample) {
    const bool is_shown = built_.add(known.id, of_window(at), sample).has_value();
    if (events() == nullptr) return;
    if (is_shown) events_->sample(known.id, of_window(at), sample);
    else events_->lost(known.id, of_window(at), Loss::left_out, sample.stopped_ns);
  }
  Tick of_window(const Tick& tick) const { return {tick.at_ns - window_.from_ns, tick.weight}; }

  RawEvents* events() {
    if (events_ != nullptr && !std::exchange(events_begun_, true)) events_->begin(tables_, unit_);
    return events_;
  }

  bool read_loss(Fields fields) {
    const std::uint32_t loss = fields.index(loss_count);
    const int count = fields.small_number();
    if (!fields.good() || loss == 0) return false;
    if (!counts()) return true;
    profile_.add_loss(static_cast<Loss>(loss), count);
    if (events() != nullptr) events_->loss(static_cast<Loss>(loss), count);
    return true;
  }

  bool read_idle(Fields fields) {
    const int count = fields.small_number();
    if (!fields.good() || !counts()) return fields.good();
    profile_.add_idle(count);
    if (events() != nullptr) events_->idle(count);
    return true;
  }

  bool read_waiting(Fields fields) {
    const int count = fields.small_number();
    if (!fields.good() || !counts()) return fields.good();
    profile_.add_waiting(count);
    if (events() != nullptr) events_->waiting(count);
    return true;
  }

  bool read_state(Fields fields) {
    KnownHeap known;
    known.state.pid = fields.small_number();
    known.state.G = fields.number();
    if (!fields.good() || heaps_.size() == HeapChanges::most_states) return false;
    heaps_.push_back(known);
    return true;
  }

  bool read_heap(Fields fields) {
    const std::uint32_t state = fields.index(heaps_.size());
    const std::uint64_t flags = fields.number(), phase = flags & raw::phase_bits;
    const std::int64_t change = fields.signed_number();
    if (!fields.good() || phase >= collector_phase_count) return false;
    KnownHeap& known = heaps_[state];
    known.bytes += (flags & raw::has_shrunk) != 0 ? -change : change;
    if (known.bytes < 0 || known.bytes > HeapReading::most_bytes) return false;
    const HeapChange now = {state, known.bytes, static_cast<CollectorPhase>(phase), (flags & raw::has_collected) != 0};
    if (tick_.at_ns < window_.from_ns) known.before = now;
    else if (is_in_window()) begin_window(), add(known, tick_.at_ns - window_.from_ns, now);
    return true;
  }

  // The heaps begin with the sizes that they had before.
  void begin_window() {
    for (KnownHeap& known : heaps_) {
      if (!known.before) continue;
      HeapChange before = *std::exchange(known.before, {});
      before.collected = false;
      if (before.bytes != 0) add(known, 0, before);
    }
  }
  void add(KnownHeap& known, std::int64_t at_ns, HeapChange change) {
    if (!known.index) {
      known.index = profile_.heaps.add_state(known.state);
      if (events() != nullptr) events_->state(known.state);
    }
    change.state = *known.index;
    profile_.heaps.add(at_ns, change);
    if (events() != nullptr) events_->heap({at_ns, 0}, change);
  }

  bool read_source(Fields fields) {
    const std::string file = printable(fields.text(), longest_name);
    const std::uint64_t flags = fields.number();
    const std::string_view text = fields.rest();
    if (!fields.good() || text.size() > source_bytes_left_ || !has_room_for(sizeof(Profile::Source) + file.size()))
      return false;
    source_bytes_left_ -= text.size();
    if (text.empty()) profile_.sources.erase(file);
    else profile_.sources[file] = {std::string(text), (flags & raw::is_changed) != 0};
    return true;
  }

  // Rejects a file whose numbers would overflow the sum.
  bool add_up(std::int64_t number) {
    sum_ += number;
    return static_cast<std::uint64_t>(sum_) <= any_number;
  }
  // A few bytes in the file can refer to a long string: the result must not be much larger than the
  // file.
  bool has_room_for(std::size_t bytes) { return (text_bytes_ += bytes) <= most_text; }
  bool is_in_window() const { return is_in_window(tick_.at_ns); }
  bool is_in_window(std::int64_t at_ns) const {
    return at_ns >= window_.from_ns && (!window_.to_ns || at_ns <= *window_.to_ns);
  }
  // What was counted at this tick is asked for.
  bool counts() const { return !takes_allocations_ && is_in_window(); }
  const std::string& string(Fields& fields) {
    static const std::string none;
    const std::uint32_t index = fields.index(strings_.size());
    return fields.good() ? strings_[index] : none;
  }

  std::uint8_t version_;
  Unit unit_ = Unit::nanoseconds;  // of the file
  bool unit_known_ = false, takes_allocations_ = false;
  std::optional<Error> refused_;
  const RawWindow& window_;
  RawEvents* events_;  // or nullptr
  bool events_begun_ = false;
  std::vector<std::string> strings_;
  EventTables tables_;           // as recorded
  std::vector<FrameId> frames_;  // by number in the file
  std::vector<StackId> nodes_{empty_stack};
  std::vector<KnownThread> threads_;
  std::vector<KnownHeap> heaps_;
  std::size_t text_bytes_ = 0;  // of strings, frames, threads and names of files
  std::size_t source_bytes_left_ = raw::most_source;
  Tick tick_;
  // ticks_: records of these since the last word about their number, of which a whole recording needs none. Several
  // threads' records may be of one tick, so their number is not that of the ticks.
  std::int64_t ticks_ = 0, sum_ = 0;  // sum_: of stop times and weights
  Mode mode_;
  ProfileBuilder built_;
  ProfileBuilder built_of_allocations_;  // for `events_`: which of them --only and --ignore leave
  Profile& profile_ = built_.profile();
};

std::uint32_t u32(const char* bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

constexpr const char* no_recording =
    "This page carries no recording. Pages carry one unless it has more than 64 MiB, or they show a comparison, a "
    "heap, or a "
    "part that report was asked for (--from, --to, --thread, --only, --ignore, --unit).";

}  // namespace

std::string raw_bytes(std::istream& in, std::size_t most) {
  std::string bytes(most + 1, '\0');
  if (is_page(in)) {
    PageRecording recording(in, most + 1);
    std::istream inside(&recording);
    inside.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(inside.gcount()));
  } else {
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (bytes.size() > most) bytes.clear();
  return bytes;
}

Result<Profile> read_raw(std::istream& in, const ViewOptions& shape, const RawWindow& window, bool keeps_order,
                         const std::function<void(std::int64_t)>& seen, RawEvents* events) {
  if (is_page(in)) {
    PageRecording recording(in, raw::most_carried);
    if (!recording.found()) return Error{Cause::usage, no_recording};
    std::istream inside(&recording);
    const auto seen_of_page = [&](std::int64_t) { seen(recording.read()); };
    return read_raw(inside, shape, window, keeps_order,
                    seen ? std::function<void(std::int64_t)>(seen_of_page) : nullptr, events);
  }
  std::string head(raw::magic.size() + 1, '\0');
  if (!in.read(head.data(), static_cast<std::streamsize>(head.size())) || !head.starts_with(raw::magic)) {
    return Error{Cause::usage, "This is no raw recording and no flame graph page. luaspy record writes them."};
  }
  const auto version = static_cast<std::uint8_t>(head.back());
  if (version < raw::first_version || version > raw::version) {
    return Error{Cause::unsupported,
                 fmt::format("This is a raw recording of version {}; this luaspy reads versions {} to {}.", version,
                             raw::first_version, raw::version)};
  }
  RawReader reader(version, shape, window, keeps_order, events);
  std::string block;
  auto bytes = static_cast<std::int64_t>(head.size());
  for (;;) {
    char sizes[8];
    in.read(sizes, sizeof sizes);
    if (in.gcount() == 0) return reader.finish(true);
    const std::uint32_t size = u32(sizes);
    if (in.gcount() != sizeof sizes || size > raw::largest_block) return reader.finish(false);
    block.resize(size);
    if (!in.read(block.data(), size) || crc32(0, reinterpret_cast<const Bytef*>(block.data()), size) != u32(sizes + 4))
      return reader.finish(false);
    if (seen) seen(bytes += static_cast<std::int64_t>(sizeof sizes) + size);
    if (reader.read_block(block)) continue;
    if (reader.refused()) return *reader.refused();
    return reader.finish(false);
  }
}

}  // namespace luaspy
