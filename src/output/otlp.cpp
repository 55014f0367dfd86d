#include "output/otlp.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "base/word_hash.h"
#include "events/span.h"
#include "output/otlp_wire.h"
#include "profile/function_table.h"
#include "profile/recorded.h"

namespace luaspy {
namespace {

// What one Profile counts.
struct Counted {
  std::string_view type, unit, period_type, period_unit;
  bool samples;  // their number, not their weight
};
constexpr Counted on_cpu = {"samples", "count", "cpu", "nanoseconds", true};
// As the profiler of OpenTelemetry itself names it.
constexpr Counted off_cpu = {"off_cpu", "nanoseconds", "off_cpu", "nanoseconds", false};
constexpr Counted bytes = {"alloc_space", "bytes", "space", "bytes", false};
constexpr Counted samples = {"samples", "count", "samples", "count", true};
constexpr Counted objects = {"alloc_objects", "count", "space", "bytes", false};

// profile.frame.type, where the conventions have one.
std::string_view frame_type(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::lua:
      return "lua";
    case Frame::Kind::c:
    case Frame::Kind::native:
      return "native";
    case Frame::Kind::kernel:
      return "kernel";
    case Frame::Kind::marker:
      break;
  }
  return "";
}

std::string profile_id(const Metadata& about, int pid, const otlp::Profile& profile) {
  std::string id;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    std::uint64_t hash = hash_basis;
    mix(hash, seed);
    mix(hash, about.command);
    for (const std::uint64_t fact :
         {static_cast<std::uint64_t>(pid), profile.time_ns, profile.duration_ns,
          static_cast<std::uint64_t>(profile.sample_type.type), static_cast<std::uint64_t>(profile.samples.size())})
      mix(hash, fact);
    hash |= 1;  // not all of it may be 0
    for (int i = 0; i < 8; ++i) id += static_cast<char>(hash >> (8 * i));
  }
  return id;
}

// nullopt: it is "(unknown)", or another's label of this name.
std::optional<Span> span_in(const SampleLabel& label) {
  return label.name == trace_label ? span_of_text(label.value) : std::nullopt;
}

}  // namespace

OtlpBuilder::OtlpBuilder() {
  otlp::Dictionary& tables = message_.dictionary;
  tables.mappings.emplace_back();
  tables.locations.emplace_back();
  tables.functions.emplace_back();
  tables.links.emplace_back();
  tables.attributes.emplace_back();
  tables.stacks.emplace_back();
  (void)string("");
}

// Strings have to be UTF-8.
std::int32_t OtlpBuilder::string(std::string_view text) {
  constexpr std::size_t longest = 1 << 16;
  std::vector<std::string>& all = message_.dictionary.strings;
  const auto [place, added] = strings_.emplace(printable(text, longest), static_cast<std::int32_t>(all.size()));
  if (added) all.push_back(place->first);
  return place->second;
}

otlp::ValueType OtlpBuilder::value_type(std::string_view type, std::string_view unit) {
  return {string(type), string(unit)};
}

std::int32_t OtlpBuilder::mapping(std::string_view file) {
  std::vector<otlp::Mapping>& all = message_.dictionary.mappings;
  const auto [place, added] = mappings_.emplace(std::string(file), static_cast<std::int32_t>(all.size()));
  if (added) all.push_back({.file = string(file), .attributes = {}});
  return place->second;
}

std::int32_t OtlpBuilder::attribute(std::string_view key, std::string_view value) {
  std::vector<otlp::Attribute>& all = message_.dictionary.attributes;
  const auto [place, added] = attributes_.emplace(std::pair(string(key), string(value)),
                                                  static_cast<std::int32_t>(all.size()));
  if (added) all.push_back({.key = place->first.first, .value = otlp::Value(std::string(value))});
  return place->second;
}

std::int32_t OtlpBuilder::link(const Span& span) {
  std::vector<otlp::Link>& all = message_.dictionary.links;
  const auto [place, added] = links_.emplace(span.trace + span.id, static_cast<std::int32_t>(all.size()));
  if (added) all.push_back({span.trace, span.id});
  return place->second;
}

// One profile on its way into the message.
class OtlpBuilder::Source {
 public:
  Source(OtlpBuilder& builder, const Profile& profile, const WriteOptions& options)
      : its_(builder), profile_(profile), options_(options) {
    add_functions();
    add_locations();
  }

  void add(const OtlpAttributes& known) {
    // An exec leaves the number, and makes another program of the process.
    std::map<std::pair<int, std::string>, Counts> by_program;
    for (const auto& [of, amount] : profile_.counts()) {
      const ThreadInfo& thread = profile_.threads()[of.thread];
      by_program[{process_of(profile_, thread), command_of(profile_, thread)}].emplace_back(of, amount);
    }
    for (const auto& [program, counts] : by_program) {
      const int pid = program.first;
      otlp::ResourceProfiles resource;
      resource.resource = resource_of(pid, counts.front().first.thread, known);
      otlp::ScopeProfiles& scope = resource.scopes.emplace_back();
      scope.scope = {"luaspy", profile_.about.luaspy};
      add_profiles(pid, counts, scope.profiles);
      its_.message_.resources.push_back(std::move(resource));
    }
  }

 private:
  using Counts = std::vector<std::pair<Profile::ThreadSituation, Profile::Amount>>;

  // Functions are told apart by their names alone, in most engines: the names are those of luaspy's own tables.
  void add_functions() {
    first_function_ = static_cast<std::int32_t>(its_.message_.dictionary.functions.size());
    for (std::size_t i = 0; i < functions_.functions.size(); ++i) {
      const Frame& function = functions_.functions[i];
      const std::string& text = functions_.texts[i];
      its_.message_.dictionary.functions.push_back(
          {.name = its_.string(text),
           .system_name = function.name != text ? its_.string(function.name) : 0,
           .file = function.kind == Frame::Kind::lua ? its_.string(function.file) : 0,
           .start_line = function.line_defined});
    }
  }

  // One for each frame of the profile, so that each line that ran has its own; engines sum them by function.
  void add_locations() {
    first_location_ = static_cast<std::int32_t>(its_.message_.dictionary.locations.size());
    for (std::uint32_t i = 0; i < profile_.frames().size(); ++i) {
      const FrameId id{i};
      const Frame& frame = profile_.frames()[id];
      otlp::Location location;
      location.lines.push_back({first_function_ + static_cast<std::int32_t>(functions_.of_frame[id]), line_of(frame)});
      if (frame.kind != Frame::Kind::lua && !frame.file.empty()) location.mapping = its_.mapping(frame.file);
      if (const std::string_view type = frame_type(frame.kind); !type.empty())
        location.attributes.push_back(its_.attribute("profile.frame.type", type));
      its_.message_.dictionary.locations.push_back(std::move(location));
    }
  }

  std::int32_t stack(StackId id) {
    const auto [place, added] = stacks_.emplace(id, static_cast<std::int32_t>(its_.message_.dictionary.stacks.size()));
    if (!added) return place->second;
    const std::vector<FrameId> frames = profile_.stack(id);
    otlp::Stack stack;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      stack.locations.push_back(first_location_ + static_cast<std::int32_t>(number(*frame)));
    its_.message_.dictionary.stacks.push_back(std::move(stack));
    return place->second;
  }

  otlp::Resource resource_of(int pid, std::uint32_t thread, const OtlpAttributes& known) {
    otlp::Resource resource;
    const auto add = [&](std::string_view key, otlp::Value value) {
      const bool there = std::ranges::any_of(resource.attributes, [&](const auto& each) { return each.key == key; });
      if (!there) resource.attributes.push_back({std::string(key), std::move(value)});
    };
    for (const auto& [key, value] : known) add(key, otlp::Value(printable(value)));
    const std::string command = command_of(profile_, profile_.threads()[thread]);
    const bool is_target = pid == profile_.about.pid;
    const std::string executable = is_target ? base_name(profile_.about.executable) : "";
    const std::string name = executable.empty() ? program_in(command) : executable;
    add("service.name", otlp::Value(printable(name)));
    add("process.pid", otlp::Value(std::int64_t{pid}));
    add("process.executable.name", otlp::Value(printable(name)));
    if (is_target) add("process.executable.path", otlp::Value(printable(profile_.about.executable)));
    for (const std::string& lua : profile_.about.luas) {  // "Lua 5.4.3-5.4.9", "LuaJIT 2.1", "LuaJIT, 64-bit
                                                          // references"
      const std::size_t end = lua.find_first_of(" ,");
      add("process.runtime.name", otlp::Value(lua.substr(0, end)));
      if (end != std::string::npos && lua[end] == ' ') add("process.runtime.version", otlp::Value(lua.substr(end + 1)));
    }
    return resource;
  }

  void add_profiles(int pid, const Counts& counts, std::vector<otlp::Profile>& all) {
    if (!options_.values.empty()) {
      for (const SampleValues& each : options_.values) {
        const Counted counted = {each.type, each.unit, "space", "bytes", false};
        add_profile(pid, counted, all, counts, [&](const auto& of, const auto&) {
          const auto value = each.values.find(of);
          return value != each.values.end() ? value->second : 0;
        });
      }
    } else if (profile_.about.unit != Unit::nanoseconds) {
      const Unit unit = profile_.about.unit;
      add_profile(pid,
                  unit == Unit::bytes     ? bytes
                  : unit == Unit::objects ? objects
                                          : samples,
                  all, counts, [](const auto&, const auto& its) { return its.weight; });
    } else {
      const auto runs = [&](const Profile::ThreadSituation& of) {
        return profile_.situations()[of.situation].state == Sample::State::running;
      };
      add_profile(pid, on_cpu, all, counts,
                  [&](const auto& of, const auto& its) { return runs(of) ? its.samples : std::int64_t{0}; });
      add_profile(pid, off_cpu, all, counts,
                  [&](const auto& of, const auto& its) { return runs(of) ? std::int64_t{0} : its.weight; });
    }
  }

  template <typename ValueOf>
  void add_profile(int pid, const Counted& counted, std::vector<otlp::Profile>& all, const Counts& counts,
                   const ValueOf& value_of) {
    std::map<std::tuple<std::int32_t, std::vector<std::int32_t>, std::int32_t>, std::int64_t> values;  // by stack,
                                                                                                       // attributes and
                                                                                                       // link
    for (const auto& [of, amount] : counts) {
      const std::int64_t value = value_of(of, amount);
      if (value != 0)
        values[{stack(profile_.situations()[of.situation].stack), attributes_of(of), link_of(of)}] += value;
    }
    if (values.empty()) return;
    const Metadata& about = profile_.about;
    otlp::Profile profile;
    profile.sample_type = its_.value_type(counted.type, counted.unit);
    profile.period_type = its_.value_type(counted.period_type, counted.period_unit);
    profile.period = counted.samples && about.rate > 0 ? std::llround(1e9 / about.rate) : 1;
    constexpr std::int64_t second = 1'000'000'000, last = 9'000'000'000;
    profile.time_ns = static_cast<std::uint64_t>(std::clamp<std::int64_t>(about.started_s, 0, last) * second +
                                                 options_.later_ns);
    profile.duration_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(about.duration_ns, 0));
    for (const auto& [of, value] : values) {
      const auto& [stack, attributes, link] = of;
      profile.samples.push_back({stack, attributes, link, {value}, {}});
    }
    profile.id = profile_id(about, pid, profile);
    all.push_back(std::move(profile));
  }

  // Threads by name, not by number: an engine keeps a series for each combination of attributes.
  std::vector<std::int32_t> attributes_of(const Profile::ThreadSituation& of) {
    const Profile::Situation& situation = profile_.situations()[of.situation];
    const ThreadInfo& thread = profile_.threads()[of.thread];
    std::vector<std::int32_t> all = {its_.attribute("thread.name", thread.name),
                                     its_.attribute("luaspy.vm_state", name(situation.vm_state))};
    if (situation.state != Sample::State::running) all.push_back(its_.attribute("luaspy.state", name(situation.state)));
    for (const SampleLabel& each : profile_.labels()[situation.labels]) {
      if (!span_in(each)) all.push_back(its_.attribute(each.name, each.value));
    }
    if (options_.threads) all.push_back(its_.attribute("thread.id", std::to_string(thread.tid)));
    return all;
  }

  std::int32_t link_of(const Profile::ThreadSituation& of) {
    for (const SampleLabel& each : profile_.labels()[profile_.situations()[of.situation].labels]) {
      if (const std::optional<Span> span = span_in(each)) return its_.link(*span);
    }
    return 0;
  }

  OtlpBuilder& its_;
  const Profile& profile_;
  const WriteOptions& options_;
  FunctionTable functions_ = functions_of(profile_, false);
  std::int32_t first_function_ = 0, first_location_ = 0;
  std::map<StackId, std::int32_t> stacks_;
};

void OtlpBuilder::add(const Profile& profile, const WriteOptions& options, const OtlpAttributes& known) {
  Source(*this, profile, options).add(known);
}

void write_otlp(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  OtlpBuilder builder;
  builder.add(profile, options);
  out << otlp::to_protobuf(builder.message());
}

void write_otlp_json(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  OtlpBuilder builder;
  builder.add(profile, options);
  out << otlp::to_json(builder.message()) << '\n';
}

}  // namespace luaspy
