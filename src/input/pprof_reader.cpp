#include "input/pprof_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/protobuf_fields.h"
#include "base/text.h"
#include "input/foreign_stacks.h"
#include "input/frame_text.h"
#include "input/raw_fields.h"
#include "input/sample_labels.h"
#include "input/source_stream.h"
#include "profile/pprof_fields.h"

namespace luaspy {
namespace {

using Field = ProtobufFields::Field;

namespace in = pprof_field;

struct ValueType {
  std::uint32_t type = 0, unit = 0;  // strings
};

struct Line {
  std::uint64_t function = 0;
  int line = 0;
};

struct Location {
  std::uint64_t mapping = 0, address = 0;
  std::vector<Line> lines;  // innermost first: all but the last are inlined
  std::optional<std::vector<FrameId>> frames{};
};

struct Function {
  std::uint32_t name = 0, system_name = 0, file = 0;  // strings
  int start_line = 0;
};

struct Mapping {
  std::uint64_t start = 0, file_offset = 0;
  std::uint32_t file = 0;  // string
};

// What values count.
struct ValueUnit {
  Unit unit = Unit::samples;
  std::int64_t scale = 1;  // a value times this is in `unit`
};

// `type` and `unit`: "cpu" and "nanoseconds", "alloc_space" and "bytes", "samples" and "count". What is not
// known is counted as it is.
constexpr ValueUnit value_unit(std::string_view type, std::string_view unit) {
  if (unit == "nanoseconds" || unit == "ns") return {Unit::nanoseconds, 1};
  if (unit == "microseconds" || unit == "us") return {Unit::nanoseconds, 1'000};
  if (unit == "milliseconds" || unit == "ms") return {Unit::nanoseconds, 1'000'000};
  if (unit == "seconds" || unit == "s") return {Unit::nanoseconds, 1'000'000'000};
  if (unit == "bytes") return {Unit::bytes, 1};
  if (unit == "kilobytes") return {Unit::bytes, 1024};
  if (unit == "megabytes") return {Unit::bytes, 1024 * 1024};
  const bool of_objects = type.find("object") != type.npos || type.find("alloc") != type.npos;
  return {of_objects ? Unit::objects : Unit::samples, 1};
}

int line_number(const Field& field) {
  return static_cast<int>(std::min<std::uint64_t>(field.value, std::numeric_limits<int>::max()));
}

class PprofReader {
 public:
  PprofReader(std::string_view bytes, RecordingPart& part) : bytes_(bytes), part_(part), stacks_(part) {}

  Result<std::string> read() {
    read_tables();
    choose_value();
    part_.count(unit_.unit);
    read_about();
    for (const std::string_view bytes : samples_) {
      if (std::optional<Error> refused = read_sample(bytes)) return *refused;
      if (!wrong_.empty()) return wrong_;
    }
    return torn_;
  }

 private:
  void read_tables() {
    ProtobufFields fields(bytes_);
    while (const std::optional<Field> field = fields.next()) {
      if (!field->is_bytes) read_number(*field);
      else if (field->number == in::sample_type) types_.push_back(value_type(field->bytes));
      else if (field->number == in::sample) samples_.push_back(field->bytes);
      else if (field->number == in::mapping) read_mapping(field->bytes);
      else if (field->number == in::location) read_location(field->bytes);
      else if (field->number == in::function) read_function(field->bytes);
      else if (field->number == in::string_table) strings_.push_back(field->bytes);
      else if (field->number == in::period_type) period_type_ = value_type(field->bytes);
      else if (field->number == in::comment) (void)add_numbers(*field, comments_);
    }
    if (fields.torn()) torn_ = fmt::format("byte {}: this is no whole field of protobuf", fields.offset());
  }

  void read_number(const Field& field) {
    if (field.number == in::time_nanos) time_ns_ = field.signed_value();
    else if (field.number == in::duration_nanos) duration_ns_ = field.signed_value();
    else if (field.number == in::period) period_ = field.signed_value();
    else if (field.number == in::default_sample_type) default_type_ = field.index();
    else if (field.number == in::comment) comments_.push_back(field.value);
  }

  static ValueType value_type(std::string_view bytes) {
    ValueType type;
    ProtobufFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::type) type.type = field->index();
      if (field->number == in::unit) type.unit = field->index();
    }
    return type;
  }

  void read_mapping(std::string_view bytes) {
    std::uint64_t id = 0;
    Mapping mapping;
    ProtobufFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::mapping_id) id = field->value;
      if (field->number == in::memory_start) mapping.start = field->value;
      if (field->number == in::file_offset) mapping.file_offset = field->value;
      if (field->number == in::mapping_filename) mapping.file = field->index();
    }
    if (mappings_.empty()) main_file_ = mapping.file;
    if (has_room()) mappings_[id] = mapping;
  }

  void read_location(std::string_view bytes) {
    constexpr std::size_t most_lines = 64;  // inlined into each other
    std::uint64_t id = 0;
    Location location;
    ProtobufFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::id_of_location) id = field->value;
      if (field->number == in::mapping_of_location) location.mapping = field->value;
      if (field->number == in::address) location.address = field->value;
      if (field->number != in::line || !field->is_bytes || location.lines.size() == most_lines) continue;
      Line& line = location.lines.emplace_back();
      ProtobufFields of_line(field->bytes);
      while (const std::optional<Field> each = of_line.next()) {
        if (each->number == in::function_id) line.function = each->value;
        if (each->number == in::line_number) line.line = line_number(*each);
      }
    }
    if (has_room()) locations_[id] = std::move(location);
  }

  void read_function(std::string_view bytes) {
    std::uint64_t id = 0;
    Function function;
    ProtobufFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::id_of_function) id = field->value;
      if (field->number == in::name) function.name = field->index();
      if (field->number == in::system_name) function.system_name = field->index();
      if (field->number == in::filename) function.file = field->index();
      if (field->number == in::start_line) function.start_line = line_number(*field);
    }
    if (has_room()) functions_[id] = function;
  }

  std::string_view string(std::uint64_t index) const {
    return index < strings_.size() ? strings_[static_cast<std::size_t>(index)] : std::string_view();
  }

  bool has_room() {
    constexpr std::size_t most = 1 << 21;
    const bool has_room = mappings_.size() + locations_.size() + functions_.size() < most;
    if (!has_room && torn_.empty()) torn_ = ForeignStacks::no_room;
    return has_room;
  }

  ValueUnit unit_of(const ValueType& type) const { return value_unit(string(type.type), string(type.unit)); }

  // As pprof chooses: the default, else the last. If allocations are asked for in one unit, the values in that.
  void choose_value() {
    if (types_.empty()) types_.emplace_back();
    value_ = types_.size() - 1;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (default_type_ != 0 && types_[i].type == default_type_) value_ = i;
    }
    const auto is_asked_for = [&](std::size_t at) { return unit_of(types_[at]).unit == part_.asked_for(); };
    // Of "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", the one beside the default.
    if (part_.asked_for() && !is_asked_for(value_)) {
      if (value_ > 0 && is_asked_for(value_ - 1)) --value_;
      else if (value_ + 1 < types_.size() && is_asked_for(value_ + 1)) ++value_;
    }
    unit_ = unit_of(types_[value_]);
    if (value_ == 0 || string(types_[value_ - 1].unit) != "count") return;
    const bool is_amount = unit_.unit == Unit::nanoseconds || unit_.unit == Unit::bytes;
    if (is_amount || string(types_[value_ - 1].type) == "samples") number_ = value_ - 1;
  }

  void read_about() {
    Metadata& about = part_.about();
    about.started_s = std::clamp<std::int64_t>(time_ns_ / 1'000'000'000, 0, 9'000'000'000);
    about.duration_ns = std::clamp<std::int64_t>(duration_ns_, 0, any_number);
    if (period_ > 0 && unit_of(period_type_).unit == Unit::nanoseconds)
      about.rate = 1e9 / static_cast<double>(period_) / static_cast<double>(unit_of(period_type_).scale);
    about.executable = printable(string(main_file_));
    about.command = base_name(about.executable);
    for (const std::uint64_t index : comments_) {
      const std::string_view fact = string(index);
      const auto value_of = [&](std::string_view key) { return fact.starts_with(key) ? fact.substr(key.size()) : ""; };
      if (const std::string_view command = value_of("command: "); !command.empty()) about.command = printable(command);
      if (const std::string_view pid = value_of("pid: "); !pid.empty())
        (void)std::from_chars(pid.data(), pid.data() + pid.size(), about.pid);
      is_of_luaspy_ |= fact.starts_with("recorded by: luaspy ");
    }
    about.pid = std::clamp<std::int64_t>(about.pid, 0, std::numeric_limits<int>::max());
  }

  // luaspy writes the texts of frames as names of functions.
  Frame frame_of_line(const Line& line, const Location& location) {
    const auto known = functions_.find(line.function);
    if (known == functions_.end()) return marker("[unknown]");
    const Function& function = known->second;
    const std::string_view name = string(function.name), file = string(function.file);
    Frame frame;
    if (is_of_luaspy_) {
      frame = frame_of(name);
      if (!file.empty()) frame.kind = Frame::Kind::lua;
      if (function.system_name != 0 && frame.kind != Frame::Kind::marker) frame.name = string(function.system_name);
    } else {
      if (file.ends_with(".lua")) frame.kind = Frame::Kind::lua;
      frame.name = name.empty() ? string(function.system_name) : name;
    }
    if (frame.kind == Frame::Kind::lua) {
      frame.file = file, frame.line_defined = function.start_line, frame.line = line.line;
    } else if (!is_of_luaspy_) {
      const auto module = mappings_.find(location.mapping);
      frame.file = base_name(module != mappings_.end() && module->second.file != 0 ? string(module->second.file)
                                                                                   : file);
    }
    return frame;
  }

  // Outermost first.
  const std::vector<FrameId>& frames_of(Location& location) {
    if (location.frames) return *location.frames;
    location.frames.emplace();
    if (location.lines.empty()) location.frames->push_back(stacks_.frame(place_of(location)));
    for (auto line = location.lines.rbegin(); line != location.lines.rend(); ++line)
      location.frames->push_back(stacks_.frame(frame_of_line(*line, location)));
    return *location.frames;
  }

  Frame place_of(const Location& location) const {
    Frame frame;
    const auto module = mappings_.find(location.mapping);
    if (module == mappings_.end()) {
      frame.name = fmt::format("{:#x}", location.address);
      return frame;
    }
    frame.file = base_name(string(module->second.file));
    frame.name = fmt::format("{}+{:#x}", frame.file,
                             location.address - module->second.start + module->second.file_offset);
    return frame;
  }

  std::optional<Error> read_sample(std::string_view bytes) {
    std::vector<std::uint64_t> locations, values;
    SampleLabels labels;
    ProtobufFields fields(bytes);
    bool good = true;
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::location_id) good &= add_numbers(*field, locations);
      if (field->number == in::value) good &= add_numbers(*field, values);
      if (field->number == in::label && field->is_bytes) read_label(field->bytes, labels);
    }
    if (!good || fields.torn()) return torn("a sample is damaged");
    const auto value = static_cast<std::int64_t>(value_ < values.size() ? values[value_] : 0);
    auto count = static_cast<std::int64_t>(number_ && *number_ < values.size() ? values[*number_] : 1);
    if (value < 0 || count < 0)
      return Error{Cause::unsupported,
                   "It has negative values: it is a difference of two profiles, which luaspy cannot read."};
    if (!number_ && (unit_.unit == Unit::samples || unit_.unit == Unit::objects)) count = value;
    if (value == 0 && (count == 0 || !number_)) return {};
    if (value > static_cast<std::int64_t>(any_number) / unit_.scale) return torn("a value is too large");
    Sample sample;
    static_cast<Attributes&>(sample) = labels.attributes;
    sample.labels = part_.tables().labels.intern(labels.labels);
    for (auto id = locations.rbegin(); id != locations.rend(); ++id) {
      const auto known = locations_.find(*id);
      if (known == locations_.end()) continue;
      for (const FrameId frame : frames_of(known->second)) sample.stack = stacks_.stack(sample.stack, frame);
    }
    const ThreadId thread = stacks_.thread(labels.thread);
    if (!stacks_.has_room()) return torn(ForeignStacks::no_room);
    if (!part_.tick(0, value * unit_.scale, std::max<std::int64_t>(count, 1)) || !part_.sample(thread, sample))
      return torn("the sum of all values is too large");
    return {};
  }

  std::optional<Error> torn(std::string_view what) { return wrong_ = what, std::nullopt; }

  void read_label(std::string_view bytes, SampleLabels& labels) const {
    std::uint64_t key = 0, text = 0;
    std::int64_t number = 0;
    ProtobufFields fields(bytes);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == in::key) key = field->value;
      if (field->number == in::str) text = field->value;
      if (field->number == in::num) number = field->signed_value();
    }
    labels.add(string(key), text != 0 ? std::string(string(text)) : std::to_string(number), part_.about().pid);
  }

  std::string_view bytes_;
  RecordingPart& part_;
  ForeignStacks stacks_;
  std::string torn_, wrong_;  // of the message; of a sample, which ends it
  std::vector<ValueType> types_;
  std::vector<std::string_view> samples_, strings_;
  std::unordered_map<std::uint64_t, Mapping> mappings_;
  std::unordered_map<std::uint64_t, Location> locations_;
  std::unordered_map<std::uint64_t, Function> functions_;
  std::vector<std::uint64_t> comments_;
  ValueType period_type_;
  std::int64_t time_ns_ = 0, duration_ns_ = 0, period_ = 0;
  std::uint32_t default_type_ = 0, main_file_ = 0;
  bool is_of_luaspy_ = false;
  std::size_t value_ = 0;              // which of the values of a sample is shown
  std::optional<std::size_t> number_;  // and which one says how many samples it is of
  ValueUnit unit_;
};

// By its fields. OpenTelemetry's messages have fields 1 and 2 only.
bool is_pprof(std::string_view bytes) {
  ProtobufFields fields(bytes);
  bool has_strings = false;
  while (const std::optional<Field> field = fields.next()) {
    if (field->number > in::last_of_profile) return false;
    has_strings |= field->number == in::string_table && field->is_bytes;
  }
  return has_strings;
}

}  // namespace

Result<std::string> read_pprof(std::istream& in, RecordingPart& part) {
  const Result<std::string> bytes = read_all_of(in);
  if (!bytes) return bytes.error();
  if (is_pprof(*bytes)) return PprofReader(*bytes, part).read();
  return Error{Cause::usage,
               "This is not a profile of pprof, or not all of one. Profiles of OpenTelemetry (.otlp), which begin "
               "alike, are written by luaspy but not read."};
}

}  // namespace luaspy
