#include "input/otlp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/protobuf_fields.h"
#include "base/text.h"
#include "events/span.h"
#include "input/foreign_stacks.h"
#include "input/frame_text.h"
#include "input/raw_fields.h"
#include "input/sample_labels.h"
#include "input/source_stream.h"
#include "input/value_unit.h"

namespace luaspy {
namespace {

using Field = ProtobufFields::Field;

template <typename See>
void each_field(std::string_view message, const See& see) {
  ProtobufFields fields(message);
  while (const std::optional<Field> field = fields.next()) see(*field);
}

// The tables of a message's dictionary, not read yet: most of a table may never be used.
struct OtlpTables {
  std::vector<std::string_view> mappings, locations, functions, links, strings, attributes, stacks;

  std::string_view string(std::uint64_t index) const { return at(strings, index); }
  static std::string_view at(const std::vector<std::string_view>& table, std::uint64_t index) {
    return index < table.size() ? table[static_cast<std::size_t>(index)] : std::string_view();
  }
};

OtlpTables tables_of(std::string_view dictionary) {
  OtlpTables tables;
  each_field(dictionary, [&](const Field& field) {
    if (!field.is_bytes) return;
    if (field.number == 1) tables.mappings.push_back(field.bytes);
    if (field.number == 2) tables.locations.push_back(field.bytes);
    if (field.number == 3) tables.functions.push_back(field.bytes);
    if (field.number == 4) tables.links.push_back(field.bytes);
    if (field.number == 5) tables.strings.push_back(field.bytes);
    if (field.number == 6) tables.attributes.push_back(field.bytes);
    if (field.number == 7) tables.stacks.push_back(field.bytes);
  });
  return tables;
}

// common.proto, AnyValue: text and numbers.
std::string text_of(std::string_view value, const OtlpTables& tables) {
  std::string text;
  each_field(value, [&](const Field& field) {
    if (field.number == 1) text = field.bytes;
    if (field.number == 3) text = std::to_string(field.signed_value());
    if (field.number == 8) text = tables.string(field.value);
  });
  return text;
}

struct OtlpAttribute {
  std::string key, value;
};

std::optional<Span> span_in(std::string_view link) {
  std::string trace, span;
  each_field(link, [&](const Field& field) {
    if (field.number == 1) trace = field.bytes;
    if (field.number == 2) span = field.bytes;
  });
  return span_of(std::move(trace), std::move(span));
}

// KeyValue of common.proto, and Attribute of the dictionary, whose key is a string's number in field 1 already.
OtlpAttribute attribute_of(std::string_view message, const OtlpTables& tables) {
  OtlpAttribute attribute;
  each_field(message, [&](const Field& field) {
    if (field.number == 1) attribute.key = field.is_bytes ? field.bytes : tables.string(field.value);
    if (field.number == 2) attribute.value = text_of(field.bytes, tables);
    if (field.number == 3 && !field.is_bytes && attribute.key.empty()) attribute.key = tables.string(field.value);
  });
  return attribute;
}

// What a profile counts.
struct OtlpValues {
  std::string_view type;
  ValueUnit unit;
  std::int64_t period_ns = 0;  // of values that are numbers of samples; 0: they are not
};

struct OtlpProfile {
  OtlpValues values;
  std::vector<std::string_view> samples;
  std::int64_t time_ns = 0, duration_ns = 0;
};

OtlpProfile profile_of(std::string_view message, const OtlpTables& tables) {
  OtlpProfile profile;
  std::string_view type, unit, period_type, period_unit;
  std::int64_t period = 0;
  const auto names = [&](std::string_view value_type, std::string_view& name, std::string_view& of) {
    each_field(value_type, [&](const Field& field) {
      if (field.number == 1) name = tables.string(field.value);
      if (field.number == 2) of = tables.string(field.value);
    });
  };
  each_field(message, [&](const Field& field) {
    if (field.number == 1) names(field.bytes, type, unit);
    if (field.number == 2 && field.is_bytes) profile.samples.push_back(field.bytes);
    if (field.number == 3) profile.time_ns = field.signed_value();
    if (field.number == 4) profile.duration_ns = field.signed_value();
    if (field.number == 5) names(field.bytes, period_type, period_unit);
    if (field.number == 6) period = field.signed_value();
  });
  profile.values = {type, value_unit(type, unit), 0};
  const ValueUnit of_period = value_unit(period_type, period_unit);
  if (profile.values.unit.unit == Unit::samples && of_period.unit == Unit::nanoseconds && period > 1 &&
      period < 1'000'000'000'000 / of_period.scale)
    profile.values = {type, {Unit::nanoseconds, period * of_period.scale}, period * of_period.scale};
  return profile;
}

// A process, as its resource says.
struct OtlpProcess {
  std::int64_t pid = 0;
  std::string command;
};

}  // namespace

class OtlpReader::State {
 public:
  explicit State(RecordingPart& part) : part_(part), stacks_(part) { part.about().kind = "profiles of OpenTelemetry"; }

  std::string read(std::string_view message) {
    std::string_view dictionary;
    std::vector<std::string_view> resources;
    ProtobufFields fields(message);
    while (const std::optional<Field> field = fields.next()) {
      if (field->number == 1 && field->is_bytes) resources.push_back(field->bytes);
      if (field->number == 2 && field->is_bytes) dictionary = field->bytes;
    }
    std::string torn = fields.torn() ? fmt::format("byte {}: this is no whole field of protobuf", fields.offset()) : "";
    tables_ = tables_of(dictionary);
    frames_.clear(), stack_ids_.clear(), attributes_.clear();
    if (!chosen_) choose(resources);
    for (const std::string_view resource : resources) {
      if (std::string wrong = read_resource(resource); !wrong.empty()) return wrong;
    }
    return torn;
  }

 private:
  struct Chosen {
    Unit unit = Unit::samples;
    std::string type;
    std::int64_t period_ns = 0;
  };

  template <typename See>
  void each_profile(std::string_view resource, const See& see) const {
    each_field(resource, [&](const Field& scope) {
      if (scope.number != 2 || !scope.is_bytes) return;
      bool is_of_luaspy = false;
      each_field(scope.bytes, [&](const Field& field) {
        if (field.number == 1)
          each_field(field.bytes,
                     [&](const Field& each) { is_of_luaspy |= each.number == 1 && each.bytes == "luaspy"; });
      });
      each_field(scope.bytes, [&](const Field& field) {
        if (field.number == 2 && field.is_bytes) see(profile_of(field.bytes, tables_), is_of_luaspy);
      });
    });
  }

  void choose(const std::vector<std::string_view>& resources) {
    for (const std::string_view resource : resources) {
      each_profile(resource, [&](const OtlpProfile& profile, bool) {
        const OtlpValues& values = profile.values;
        const bool has_time = chosen_ && chosen_->unit == Unit::nanoseconds;
        const bool has_asked_for = chosen_ && chosen_->unit == part_.asked_for();
        if (!has_time && !has_asked_for) chosen_ = {values.unit.unit, std::string(values.type), values.period_ns};
      });
    }
    if (chosen_) part_.count(chosen_->unit);
    if (chosen_ && chosen_->period_ns > 0) part_.about().rate = 1e9 / static_cast<double>(chosen_->period_ns);
  }

  // Time that was waited is another kind of profile beside that of running.
  bool is_chosen(const OtlpValues& values) const {
    return chosen_ && values.unit.unit == chosen_->unit &&
           (values.type == chosen_->type || (chosen_->unit == Unit::nanoseconds && values.type == "off_cpu"));
  }

  std::string read_resource(std::string_view resource) {
    OtlpProcess process;
    each_field(resource, [&](const Field& field) {
      if (field.number != 1) return;
      each_field(field.bytes, [&](const Field& each) {
        if (each.number != 1 || !each.is_bytes) return;
        const OtlpAttribute attribute = attribute_of(each.bytes, tables_);
        if (attribute.key == "process.pid") process.pid = std::atoi(attribute.value.c_str());
        if (attribute.key == "process.executable.name" || (attribute.key == "service.name" && process.command.empty()))
          process.command = attribute.value;
      });
    });
    Metadata& about = part_.about();
    if (about.command.empty()) {
      about.command = printable(process.command);
      about.pid = std::clamp<std::int64_t>(process.pid, 0, std::numeric_limits<int>::max());
    }
    std::string wrong;
    each_profile(resource, [&](const OtlpProfile& profile, bool is_of_luaspy) {
      if (!wrong.empty() || !is_chosen(profile.values)) return;
      const std::int64_t started_s = std::clamp<std::int64_t>(profile.time_ns / 1'000'000'000, 0, 9'000'000'000);
      if (about.started_s == 0 || started_s < about.started_s) about.started_s = started_s;
      about.duration_ns = std::max(about.duration_ns, std::clamp<std::int64_t>(profile.duration_ns, 0, any_number));
      for (const std::string_view sample : profile.samples) {
        if (wrong = read_sample(sample, profile.values, process, is_of_luaspy); !wrong.empty()) return;
      }
    });
    return wrong;
  }

  std::string read_sample(std::string_view message, const OtlpValues& counted, const OtlpProcess& process,
                          bool is_of_luaspy) {
    constexpr std::size_t most_attributes = 256;
    std::uint64_t stack = 0, link = 0, times = 0;
    std::vector<std::uint64_t> attributes, values;
    bool good = true;
    each_field(message, [&](const Field& field) {
      if (field.number == 1) stack = field.value;
      if (field.number == 2) good = add_numbers(field, attributes) && good;
      if (field.number == 3) link = field.value;
      if (field.number == 4) good = add_numbers(field, values) && good;
      if (field.number == 5) times += field.is_bytes ? field.bytes.size() / 8 : 1;
    });
    if (!good || attributes.size() > most_attributes) return "a sample is damaged";
    // Without values, each time is one of 1.
    std::int64_t value = values.empty() ? static_cast<std::int64_t>(times) : 0;
    for (const std::uint64_t each : values) {
      if (each > any_number || (value += static_cast<std::int64_t>(each)) > static_cast<std::int64_t>(any_number))
        return "a value is too large";
    }
    if (value == 0) return {};
    if (value > static_cast<std::int64_t>(any_number) / counted.unit.scale) return "a value is too large";
    SampleLabels labels;
    labels.thread.process = process.command;
    labels.add("pid", std::to_string(process.pid), part_.about().pid);
    for (const std::uint64_t index : attributes) {
      const OtlpAttribute& attribute = attribute_at(index);
      labels.add(attribute.key, attribute.value);
    }
    const std::optional<Span> span = link != 0 ? span_in(OtlpTables::at(tables_.links, link)) : std::nullopt;
    if (span) labels.add(trace_label, text_of(*span));
    Sample sample;
    static_cast<Attributes&>(sample) = labels.attributes;
    sample.labels = part_.tables().labels.intern(labels.labels);
    if (counted.type == "off_cpu" && sample.state == Sample::State::running) sample.state = Sample::State::sleeping;
    sample.stack = stack_at(stack, is_of_luaspy);
    const ThreadId thread = thread_of(labels.thread);
    const std::int64_t weight = value * counted.unit.scale;
    if (!stacks_.has_room()) return std::string(ForeignStacks::no_room);
    if (!part_.tick(0, weight, samples_of(counted, value, weight)) || !part_.sample(thread, sample))
      return "the sum of all values is too large";
    return {};
  }

  // Of time that was waited, the message does not say how many samples it is: as many as there would be of running.
  std::int64_t samples_of(const OtlpValues& counted, std::int64_t value, std::int64_t weight) const {
    const Unit unit = counted.unit.unit;
    if (counted.period_ns > 0 || unit == Unit::samples || unit == Unit::objects) return value;
    return unit == Unit::nanoseconds && chosen_->period_ns > 0
               ? std::max<std::int64_t>((weight + chosen_->period_ns / 2) / chosen_->period_ns, 1)
               : 1;
  }

  // Threads without a number are told apart by their names.
  ThreadId thread_of(ThreadInfo& thread) {
    if (thread.tid == 0) {
      if (thread_names_.size() < most_threads) thread_names_.try_emplace(thread.name, thread_names_.size());
      const auto known = thread_names_.find(thread.name);
      thread.program = known != thread_names_.end() ? known->second : 0;
    }
    return stacks_.thread(thread);
  }

  const OtlpAttribute& attribute_at(std::uint64_t index) {
    static const OtlpAttribute none;
    const std::string_view message = OtlpTables::at(tables_.attributes, index);
    constexpr std::size_t most = 1 << 18;
    if (message.empty() || attributes_.size() == most) return none;
    const auto [place, added] = attributes_.try_emplace(index);
    if (added) place->second = attribute_of(message, tables_);
    return place->second;
  }

  StackId stack_at(std::uint64_t index, bool is_of_luaspy) {
    const auto [place, added] = stack_ids_.try_emplace({index, is_of_luaspy}, empty_stack);
    if (!added) return place->second;
    std::vector<std::uint64_t> locations;
    each_field(OtlpTables::at(tables_.stacks, index), [&](const Field& field) {
      if (field.number == 1) (void)add_numbers(field, locations);
    });
    StackId stack = empty_stack;
    for (auto location = locations.rbegin(); location != locations.rend() && stacks_.has_room(); ++location) {
      for (const FrameId frame : frames_at(*location, is_of_luaspy)) stack = stacks_.stack(stack, frame);
    }
    return stack_ids_[{index, is_of_luaspy}] = stack;
  }

  // Outermost first.
  const std::vector<FrameId>& frames_at(std::uint64_t index, bool is_of_luaspy) {
    const auto [place, added] = frames_.try_emplace({index, is_of_luaspy});
    std::vector<FrameId>& frames = place->second;
    if (!added) return frames;
    constexpr std::size_t most_lines = 64;  // inlined into each other
    std::uint64_t mapping = 0, address = 0;
    std::vector<std::string_view> lines;  // innermost first
    std::string kind;
    each_field(OtlpTables::at(tables_.locations, index), [&](const Field& field) {
      if (field.number == 1) mapping = field.value;
      if (field.number == 2) address = field.value;
      if (field.number == 3 && field.is_bytes && lines.size() < most_lines) lines.push_back(field.bytes);
      std::vector<std::uint64_t> attributes;
      if (field.number == 4 && add_numbers(field, attributes)) {
        for (const std::uint64_t each : attributes) {
          if (attribute_at(each).key == "profile.frame.type") kind = attribute_at(each).value;
        }
      }
    });
    const std::string module = module_of(mapping);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      frames.push_back(stacks_.frame(is_of_luaspy ? frame_of_luaspy(*line) : frame_of_others(*line, kind, module)));
    if (lines.empty()) {
      Frame frame;
      frame.file = module;
      frame.name = module.empty() ? fmt::format("{:#x}", address) : fmt::format("{}+{:#x}", module, address);
      if (index != 0) frames.push_back(stacks_.frame(frame));
    }
    return frames;
  }

  std::string module_of(std::uint64_t index) const {
    std::string file;
    each_field(OtlpTables::at(tables_.mappings, index), [&](const Field& field) {
      if (field.number == 4) file = base_name(tables_.string(field.value));
    });
    return file;
  }

  struct Function {
    std::string_view name, system_name, file;
    std::uint64_t start_line = 0, line = 0;
  };
  Function function_of(std::string_view message) const {
    Function function;
    each_field(message, [&](const Field& field) {
      if (field.number == 2) function.line = field.value;
      if (field.number != 1) return;
      each_field(OtlpTables::at(tables_.functions, field.value), [&](const Field& each) {
        if (each.number == 1) function.name = tables_.string(each.value);
        if (each.number == 2) function.system_name = tables_.string(each.value);
        if (each.number == 3) function.file = tables_.string(each.value);
        if (each.number == 4) function.start_line = each.value;
      });
    });
    return function;
  }
  static int line_of(std::uint64_t line) {
    return static_cast<int>(std::min<std::uint64_t>(line, std::numeric_limits<int>::max()));
  }

  // luaspy writes the texts of frames as names.
  Frame frame_of_luaspy(std::string_view line) const {
    const Function function = function_of(line);
    Frame frame = frame_of(function.name);
    if (!function.system_name.empty() && frame.kind != Frame::Kind::marker) frame.name = function.system_name;
    if (function.file.empty()) return frame;
    frame.kind = Frame::Kind::lua, frame.file = function.file;
    frame.line_defined = line_of(function.start_line), frame.line = line_of(function.line);
    return frame;
  }

  Frame frame_of_others(std::string_view line, const std::string& kind, const std::string& module) const {
    const Function function = function_of(line);
    Frame frame;
    frame.name = function.name.empty() ? function.system_name : function.name;
    if (kind == "lua" || kind == "luajit" || function.file.ends_with(".lua")) {
      frame.kind = Frame::Kind::lua, frame.file = function.file;
      frame.line_defined = line_of(function.start_line), frame.line = line_of(function.line);
    } else if (kind == "kernel") {
      frame.kind = Frame::Kind::kernel, frame.file = "[kernel]";
    } else {
      frame.file = !module.empty() ? module : base_name(function.file);
    }
    return frame;
  }

  RecordingPart& part_;
  ForeignStacks stacks_;
  std::optional<Chosen> chosen_;
  std::map<std::string, std::uint64_t> thread_names_;
  // Of the message that is being read.
  OtlpTables tables_;
  std::map<std::pair<std::uint64_t, bool>, std::vector<FrameId>> frames_;
  std::map<std::pair<std::uint64_t, bool>, StackId> stack_ids_;
  std::unordered_map<std::uint64_t, OtlpAttribute> attributes_;
};

OtlpReader::OtlpReader(RecordingPart& part) : state_(std::make_unique<State>(part)) {}
OtlpReader::~OtlpReader() = default;

std::string OtlpReader::read(std::string_view message) { return state_->read(message); }

std::string OtlpReader::read_all(std::string_view bytes) {
  if (is_otlp_message(bytes)) return read(bytes);
  const std::size_t whole = bytes.size();
  while (!bytes.empty()) {
    const std::size_t at = whole - bytes.size();
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i)
      size = size << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
    if (bytes.size() < 4 || size > bytes.size() - 4) return fmt::format("byte {}: this is no whole message", at);
    const std::string wrong = read(bytes.substr(4, size));
    if (!wrong.empty()) return fmt::format("the message at byte {}: {}", at, wrong);
    bytes.remove_prefix(4 + size);
  }
  return {};
}

bool is_otlp_message(std::string_view bytes) {
  ProtobufFields fields(bytes);
  bool has_any = false;
  while (const std::optional<Field> field = fields.next()) {
    if (field->number > 2 || !field->is_bytes) return false;
    has_any = true;
  }
  return has_any;
}

}  // namespace luaspy
