#pragma once
// The messages of OpenTelemetry's profiles signal (opentelemetry-proto 1.11, profiles/v1development/profiles.proto,
// common/v1/common.proto, resource/v1/resource.proto), as far as luaspy writes them. They are plain values;
// otlp_wire.h has them as bytes and as JSON.
//
// A message has a dictionary of tables, in which everything that comes more than once is kept once. References are
// indexes into these. Entry 0 of each table is empty and means "none".

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace luaspy::otlp {

struct ValueType {
  std::int32_t type = 0, unit = 0;  // strings
};

// common.proto, AnyValue: the kinds that luaspy needs.
struct Value {
  enum class Kind : std::uint8_t { none, text, number };
  Kind kind = Kind::none;
  std::string text;
  std::int64_t number = 0;
  Value() = default;
  explicit Value(std::string value) : kind(Kind::text), text(std::move(value)) {}
  explicit Value(std::int64_t value) : kind(Kind::number), number(value) {}
};

struct KeyValue {
  std::string key;
  Value value;
};

struct Mapping {
  std::uint64_t start = 0, end = 0, file_offset = 0;
  std::int32_t file = 0;  // string
  std::vector<std::int32_t> attributes;
};

struct Line {
  std::int32_t function = 0;
  std::int64_t line = 0;
};

struct Location {
  std::int32_t mapping = 0;
  std::uint64_t address = 0;
  std::vector<Line> lines;
  std::vector<std::int32_t> attributes;
};

struct Function {
  std::int32_t name = 0, system_name = 0, file = 0;  // strings
  std::int64_t start_line = 0;
};

// A span that a sample belongs to.
struct Link {
  std::string trace_id, span_id;  // 16 and 8 bytes
};

struct Attribute {
  std::int32_t key = 0;  // string
  Value value;
  std::int32_t unit = 0;  // string
};

struct Stack {
  std::vector<std::int32_t> locations;  // innermost first
};

struct Sample {
  std::int32_t stack = 0;
  std::vector<std::int32_t> attributes;
  std::int32_t link = 0;
  std::vector<std::int64_t> values;
  std::vector<std::uint64_t> times_ns;  // since 1970
};

struct Profile {
  ValueType sample_type;
  std::vector<Sample> samples;
  std::uint64_t time_ns = 0;  // since 1970
  std::uint64_t duration_ns = 0;
  ValueType period_type;
  std::int64_t period = 0;
  std::string id;  // 16 bytes
  std::vector<std::int32_t> attributes;
};

struct Scope {
  std::string name, version;
};

struct ScopeProfiles {
  Scope scope;
  std::vector<Profile> profiles;
};

struct Resource {
  std::vector<KeyValue> attributes;
};

struct ResourceProfiles {
  Resource resource;
  std::vector<ScopeProfiles> scopes;
};

struct Dictionary {
  std::vector<Mapping> mappings;
  std::vector<Location> locations;
  std::vector<Function> functions;
  std::vector<Link> links;
  std::vector<std::string> strings;
  std::vector<Attribute> attributes;
  std::vector<Stack> stacks;
};

// ProfilesData in files, ExportProfilesServiceRequest when it is sent: they have the same fields.
struct Message {
  std::vector<ResourceProfiles> resources;
  Dictionary dictionary;
};

}  // namespace luaspy::otlp
