#include "input/raw_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/text.h"
#include "input/page_recording.h"
#include "input/raw_fields.h"
#include "input/recording_part.h"
#include "profile/raw_format.h"

namespace luaspy {
namespace {

constexpr std::int64_t last_second = 253'402'300'799;  // of the year 9999: later ones have no date

class RawReader {
 public:
  RawReader(std::uint8_t version, const ViewOptions& shape, const RawWindow& window, bool keeps_order,
            RawEvents* events)
      : version_(version), part_(shape, window, keeps_order, events) {}

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

  Profile finish(bool whole) { return part_.finish(whole); }

 private:
  struct KnownThread {
    ThreadId id{};
    std::int16_t cpu = -1;
    Quality quality, of_allocations;
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
      case raw::labels:
        return read_labels(fields);
      case raw::mark:
        return read_mark(fields);
      case raw::suspended:
        return knows_unit() && read_suspended(fields);
      case raw::allocation:
        return knows_unit() && read_allocation(fields);
      default:
        return true;
    }
  }

  bool read_about(Fields fields) {
    const std::string_view key = fields.text(), value = fields.text();
    if (!fields.good()) return false;
    Metadata& about = part_.about();
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
    else if (key == "kind") about.kind = text;
    else if (key == "timed") about.timed = number() != 0;
    else if (key == "pid") about.pid = number();
    else if (key == "started_s") about.started_s = std::min(number(), last_second);
    else if (key == "duration_ns") about.duration_ns = number();
    else if (key == "ticks") about.ticks = number(), part_.forget_ticks();
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
      part_.count(unit_);
      return unit_known_ = true;
    }
    refused_ = Error{
        Cause::unsupported,
        fmt::format("This raw recording counts {}; this luaspy knows nanoseconds, bytes, objects and samples.",
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
    std::vector<std::string>& luas = part_.about().luas;
    luas.clear();
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      luas.push_back(printable(line));
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
    frames_.push_back(part_.tables().stacks.intern(frame));
    return true;
  }

  bool read_stack(Fields fields) {
    const std::uint32_t outer = fields.index(nodes_.size()), frame = fields.index(frames_.size());
    if (!fields.good()) return false;
    nodes_.push_back(part_.tables().stacks.intern({nodes_[outer], frames_[frame]}));
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
    threads_.emplace_back().id = part_.thread(thread);
    return true;
  }

  bool read_tick(Fields fields) {
    const std::int64_t passed = fields.signed_number();
    const std::int64_t weight = fields.empty() ? passed : fields.signed_number();
    return fields.good() && part_.tick(passed, weight);
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
    KnownThread& known = threads_[thread];
    if ((flags & raw::has_quality) != 0) read_quality(fields, known.quality);
    if (!fields.empty() && fields.number() == raw::waits_for_cpu && facts.state == Sample::State::sleeping)
      facts.state = Sample::State::waiting;
    if (!fields.empty()) {
      const std::uint64_t cpu = fields.number(raw::unknown_cpu);
      if (cpu != raw::unknown_cpu) known.cpu = static_cast<std::int16_t>(cpu);
    }
    if (facts.state != Sample::State::sleeping) facts.cpu = known.cpu;
    if (!fields.empty()) facts.labels = labels_[fields.index(labels_.size())];
    if (!fields.good() || (has_loss && what == 0)) return false;
    if (has_loss) return part_.lost(known.id, facts.loss, facts.stopped_ns);
    facts.quality = known.quality;
    facts.stack = nodes_[what];
    return part_.sample(known.id, facts);
  }

  bool read_labels(Fields fields) {
    Labels labels(fields.number(raw::most_labels));
    for (SampleLabel& label : labels) {
      label.name = printable(string(fields), longest_label);
      label.value = printable(string(fields), longest_label);
      if (!has_room_for(label.name.size() + label.value.size())) return false;
    }
    if (!fields.good()) return false;
    labels_.push_back(part_.tables().labels.intern(labels));
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
    if (!fields.good() || vm_state >= vm_state_count) return false;
    Sample facts;
    facts.vm_state = static_cast<VmState>(vm_state);
    if ((flags & raw::has_stop) != 0) facts.stopped_ns = fields.signed_number();
    KnownThread& known = threads_[thread];
    if ((flags & raw::has_quality) != 0) read_quality(fields, known.of_allocations);
    if (!fields.good()) return false;
    facts.quality = known.of_allocations;
    facts.stack = nodes_[stack];
    return part_.allocation(known.id, passed, bytes, objects, facts);
  }

  bool read_loss(Fields fields) {
    const std::uint32_t loss = fields.index(loss_count);
    const int count = fields.small_number();
    if (!fields.good() || loss == 0) return false;
    part_.loss(static_cast<Loss>(loss), count);
    return true;
  }

  bool read_idle(Fields fields) {
    const int count = fields.small_number();
    if (fields.good()) part_.idle(count);
    return fields.good();
  }

  bool read_waiting(Fields fields) {
    const int count = fields.small_number();
    if (fields.good()) part_.waiting(count);
    return fields.good();
  }

  bool read_state(Fields fields) {
    const HeapChanges::State state = {fields.small_number(), fields.number()};
    return fields.good() && part_.state(state);
  }

  bool read_heap(Fields fields) {
    const std::uint32_t state = fields.index(part_.heaps());
    const std::uint64_t flags = fields.number(), phase = flags & raw::phase_bits;
    const std::int64_t change = fields.signed_number();
    if (!fields.good() || phase >= collector_phase_count) return false;
    return part_.heap(state, (flags & raw::has_shrunk) != 0 ? -change : change, static_cast<CollectorPhase>(phase),
                      (flags & raw::has_collected) != 0);
  }

  // Kinds of later releases are left out.
  bool read_mark(Fields fields) {
    const std::uint64_t kind = fields.number();
    Mark mark;
    mark.at_ns = fields.signed_number();
    mark.pid = fields.small_number();
    const std::string& file = string(fields);
    mark.line = fields.small_number();
    mark.number = fields.signed_number();
    const std::string& text = string(fields);
    if (!fields.good() || !has_room_for(sizeof(Mark) + file.size() + text.size())) return false;
    if (kind >= mark_kinds) return true;
    mark.kind = static_cast<Mark::Kind>(kind);
    mark.file = printable(file, longest_name), mark.text = printable(text, longest_name);
    part_.mark(std::move(mark));
    return true;
  }

  bool read_suspended(Fields fields) {
    constexpr std::size_t least_bytes = 5;  // of a group
    SuspendedLook look;
    look.at_ns = fields.signed_number();
    look.weight_ns = fields.signed_number();
    look.pid = fields.small_number();
    look.program = fields.number();
    look.process = string(fields);
    look.state = fields.number();
    look.unread = fields.small_number();
    const std::uint64_t count = fields.number();
    if (!fields.good() || count > fields.left() / least_bytes || !has_room_for(look.process.size())) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      SuspendedGroup& group = look.groups.emplace_back();
      group.number = static_cast<std::uint32_t>(fields.number(most_numbered));
      const std::uint32_t stack = fields.index(nodes_.size()), labels = fields.index(labels_.size());
      group.count = fields.small_number();
      group.longest_ns = fields.signed_number();
      if (!fields.good()) return false;
      group.stack = nodes_[stack], group.labels = labels_[labels];
    }
    return part_.suspended(std::move(look));
  }

  bool read_source(Fields fields) {
    const std::string file = printable(fields.text(), longest_name);
    const std::uint64_t flags = fields.number();
    const std::string_view text = fields.rest();
    if (!fields.good() || text.size() > source_bytes_left_ || !has_room_for(sizeof(Profile::Source) + file.size()))
      return false;
    source_bytes_left_ -= text.size();
    if (text.empty()) part_.sources().erase(file);
    else part_.sources()[file] = {std::string(text), (flags & raw::is_changed) != 0};
    return true;
  }

  // A few bytes in the file can refer to a long string: the result must not be much larger than the
  // file.
  bool has_room_for(std::size_t bytes) { return (text_bytes_ += bytes) <= most_text; }
  const std::string& string(Fields& fields) {
    static const std::string none;
    const std::uint32_t index = fields.index(strings_.size());
    return fields.good() ? strings_[index] : none;
  }

  std::uint8_t version_;
  Unit unit_ = Unit::nanoseconds;  // of the file
  bool unit_known_ = false;
  std::optional<Error> refused_;
  RecordingPart part_;
  std::vector<std::string> strings_;
  std::vector<FrameId> frames_;  // by number in the file
  std::vector<StackId> nodes_{empty_stack};
  std::vector<LabelsId> labels_{no_labels};
  std::vector<KnownThread> threads_;
  std::size_t text_bytes_ = 0;  // of strings, frames, threads and names of files
  std::size_t source_bytes_left_ = raw::most_source;
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
