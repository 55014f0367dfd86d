#include "output/pprof.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "output/gzip.h"
#include "output/protobuf.h"
#include "profile/function_table.h"
#include "profile/pprof_fields.h"
#include "profile/recorded.h"

namespace luaspy {
namespace {

using Message = ProtobufMessage;

namespace field = pprof_field;

// Names for the weights of samples that pprof knows from other profilers.
struct WeightName {
  std::string_view type, unit;
};
constexpr WeightName weight_name(Unit unit) {
  constexpr std::array<WeightName, unit_count> names = {
      {{"time", "nanoseconds"}, {"space", "bytes"}, {"objects", "count"}, {"samples", "count"}}};
  return names[static_cast<std::size_t>(unit)];
}

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, const WriteOptions& options, std::ostream& out)
      : profile_(profile), values_(options.values), options_(options), out_(out) {
    string("");
  }

  void write() {
    header();
    functions();
    locations();
    for (const auto& [of, amount] : profile_.counts()) sample(of, amount);
  }

 private:
  void put(int in_profile, const Message& message) {
    Message whole;
    whole.add(in_profile, message);
    out_.add(whole.bytes());
  }

  // The number of a string. A new one is written at once, because fields may be in any order.
  // Strings must be UTF-8.
  std::int64_t string(std::string_view text) {
    const auto [place, added] = strings_.emplace(printable(text, 1 << 16), static_cast<std::int64_t>(strings_.size()));
    if (added) {
      Message whole;
      whole.add(field::string_table, std::string_view(place->first));
      out_.add(whole.bytes());
    }
    return place->second;
  }

  Message value_type(std::string_view type, std::string_view unit) {
    Message message;
    message.add(field::type, string(type));
    message.add(field::unit, string(unit));
    return message;
  }

  void header() {
    const Metadata& about = profile_.about;
    const auto [type, unit] = weight_name(about.unit);
    if (values_.empty()) {
      if (about.unit != Unit::samples) put(field::sample_type, value_type("samples", "count"));
      put(field::sample_type, value_type(type, unit));
    }
    for (const SampleValues& each : values_) put(field::sample_type, value_type(each.type, each.unit));
    put(field::period_type, value_type(type, unit));
    Message rest;
    // The period is in the unit of the weights. In bytes and objects, weights have no fixed period.
    if (about.rate > 0 && about.unit == Unit::nanoseconds)
      rest.add(field::period, static_cast<std::int64_t>(std::llround(1e9 / about.rate)));
    constexpr std::int64_t second = 1'000'000'000, last = std::numeric_limits<std::int64_t>::max() / second;  // 2262
    rest.add(field::time_nanos, std::clamp(about.started_s, -last, last - 1) * second + options_.later_ns);
    rest.add(field::duration_nanos, about.duration_ns);
    rest.add(field::default_sample_type, string(values_.empty() ? type : values_.back().type));
    for (const auto& [name, value] : recorded(profile_)) {
      if (name == "pid" && !options_.numbers) continue;
      const bool is_command = name == "command" && !options_.arguments;
      rest.add(field::comment, string(name + ": " + (is_command ? program_in(value) : value)));
    }
    out_.add(rest.bytes());
    mapping(about.executable);  // the first one is what pprof calls the main binary
  }

  // The mapping is marked as having all symbols already, so that pprof does not look for them.
  std::uint64_t mapping(std::string_view file) {
    const std::uint64_t next = mappings_.size() + 1;
    const auto [place, added] = mappings_.emplace(std::string(file.substr(file.rfind('/') + 1)), next);
    if (!added) return place->second;
    Message message;
    message.add(field::mapping_id, next);
    message.add(field::mapping_filename, string(file));
    for (const int known :
         {field::has_functions, field::has_filenames, field::has_line_numbers, field::has_inline_frames})
      message.add(known, std::uint64_t{1});
    put(field::mapping, message);
    return next;
  }

  // pprof and similar tools show and sum functions by name only, so names must be unique.
  void functions() {
    for (std::size_t i = 0; i < functions_.functions.size(); ++i) {
      const Frame& function = functions_.functions[i];
      const std::string& text = functions_.texts[i];
      Message message;
      message.add(field::id_of_function, std::uint64_t{i + 1});
      message.add(field::name, string(text));
      // If both names are equal, pprof assumes C++ and demangles them.
      if (function.name != text) message.add(field::system_name, string(function.name));
      if (function.kind == Frame::Kind::lua) message.add(field::filename, string(function.file));
      message.add(field::start_line, std::int64_t{function.line_defined});
      put(field::function, message);
    }
  }

  void locations() {
    for (std::uint32_t i = 0; i < profile_.frames().size(); ++i) {
      const FrameId id{i};
      const Frame& frame = profile_.frames()[id];
      Message line, location;
      line.add(field::function_id, std::uint64_t{functions_.of_frame[id]} + 1);
      line.add(field::line_number, std::int64_t{line_of(frame)});
      location.add(field::id_of_location, std::uint64_t{i} + 1);
      if (frame.kind != Frame::Kind::lua && !frame.file.empty())
        location.add(field::mapping_of_location, mapping(frame.file));
      location.add(field::line, line);
      put(field::location, location);
    }
  }

  void sample(const Profile::ThreadSituation& of, const Profile::Amount& amount) {
    const Profile::Situation& situation = profile_.situations()[of.situation];
    const ThreadInfo& thread = profile_.threads()[of.thread];
    const auto stack = profile_.stack(situation.stack);
    std::vector<std::uint64_t> innermost_first;
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
      innermost_first.push_back(std::uint64_t{number(*frame)} + 1);
    Message message;
    message.add(field::location_id, innermost_first);
    message.add(field::value, values(of, amount));
    const auto label = [&](std::string_view key, std::string_view value) {
      Message text;
      text.add(field::key, string(key));
      text.add(field::str, string(value));
      message.add(field::label, text);
    };
    label("thread", thread.name);
    if (options_.numbers) label("tid", std::to_string(thread.tid));
    const std::string& command = command_of(profile_, thread);
    label("process", options_.arguments ? command : program_in(command));
    if (options_.numbers) label("pid", std::to_string(process_of(profile_, thread)));
    label("vm_state", name(situation.vm_state));
    label("state", name(situation.state));
    if (situation.cpu >= 0) label("cpu", std::to_string(situation.cpu));
    for (const SampleLabel& each : profile_.labels()[situation.labels]) label(each.name, each.value);
    put(field::sample, message);
  }

  std::vector<std::uint64_t> values(const Profile::ThreadSituation& of, const Profile::Amount& amount) const {
    if (values_.empty() && profile_.about.unit == Unit::samples) return {static_cast<std::uint64_t>(amount.samples)};
    if (values_.empty()) return {static_cast<std::uint64_t>(amount.samples), static_cast<std::uint64_t>(amount.weight)};
    std::vector<std::uint64_t> values;
    for (const SampleValues& each : values_) {
      const auto value = each.values.find(of);
      values.push_back(value != each.values.end() ? static_cast<std::uint64_t>(value->second) : 0);
    }
    return values;
  }

  const Profile& profile_;
  std::span<const SampleValues> values_;
  const WriteOptions& options_;
  Gzip out_;
  FunctionTable functions_ = functions_of(profile_, false);
  std::unordered_map<std::string, std::int64_t> strings_;
  std::unordered_map<std::string, std::uint64_t> mappings_;  // by file name, without the folder
};

}  // namespace

void write_pprof(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  PprofWriter(profile, options, out).write();
}

}  // namespace luaspy
