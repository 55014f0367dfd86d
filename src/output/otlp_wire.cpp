#include "output/otlp_wire.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/hex.h"
#include "base/json_text.h"
#include "output/protobuf.h"

namespace luaspy::otlp {
namespace {

// The fields of each message: their numbers, and their names in JSON. `f` writes them.

template <typename Fields>
void describe(Fields& f, const ValueType& of) {
  f.number(1, "typeStrindex", of.type);
  f.number(2, "unitStrindex", of.unit);
}

template <typename Fields>
void describe(Fields& f, const Value& of) {
  if (of.kind == Value::Kind::text) f.text_always(1, "stringValue", of.text);
  if (of.kind == Value::Kind::number) f.number_always(3, "intValue", of.number);
}

template <typename Fields>
void describe(Fields& f, const KeyValue& of) {
  f.text(1, "key", of.key);
  f.message(2, "value", of.value);
}

template <typename Fields>
void describe(Fields& f, const Mapping& of) {
  f.number(1, "memoryStart", of.start);
  f.number(2, "memoryLimit", of.end);
  f.number(3, "fileOffset", of.file_offset);
  f.number(4, "filenameStrindex", of.file);
  f.numbers(5, "attributeIndices", of.attributes);
}

template <typename Fields>
void describe(Fields& f, const Line& of) {
  f.number(1, "functionIndex", of.function);
  f.number(2, "line", of.line);
}

template <typename Fields>
void describe(Fields& f, const Location& of) {
  f.number(1, "mappingIndex", of.mapping);
  f.number(2, "address", of.address);
  f.messages(3, "lines", of.lines);
  f.numbers(4, "attributeIndices", of.attributes);
}

template <typename Fields>
void describe(Fields& f, const Function& of) {
  f.number(1, "nameStrindex", of.name);
  f.number(2, "systemNameStrindex", of.system_name);
  f.number(3, "filenameStrindex", of.file);
  f.number(4, "startLine", of.start_line);
}

template <typename Fields>
void describe(Fields& f, const Link& of) {
  f.id(1, "traceId", of.trace_id);
  f.id(2, "spanId", of.span_id);
}

template <typename Fields>
void describe(Fields& f, const Attribute& of) {
  f.number(1, "keyStrindex", of.key);
  if (of.value.kind != Value::Kind::none) f.message(2, "value", of.value);
  f.number(3, "unitStrindex", of.unit);
}

template <typename Fields>
void describe(Fields& f, const Stack& of) {
  f.numbers(1, "locationIndices", of.locations);
}

template <typename Fields>
void describe(Fields& f, const Sample& of) {
  f.number(1, "stackIndex", of.stack);
  f.numbers(2, "attributeIndices", of.attributes);
  f.number(3, "linkIndex", of.link);
  f.numbers(4, "values", of.values);
  f.fixed_numbers(5, "timestampsUnixNano", of.times_ns);
}

template <typename Fields>
void describe(Fields& f, const Profile& of) {
  f.message(1, "sampleType", of.sample_type);
  f.messages(2, "samples", of.samples);
  f.fixed_number(3, "timeUnixNano", of.time_ns);
  f.number(4, "durationNano", of.duration_ns);
  f.message(5, "periodType", of.period_type);
  f.number(6, "period", of.period);
  f.id(7, "profileId", of.id);
  f.numbers(11, "attributeIndices", of.attributes);
}

template <typename Fields>
void describe(Fields& f, const Scope& of) {
  f.text(1, "name", of.name);
  f.text(2, "version", of.version);
}

template <typename Fields>
void describe(Fields& f, const ScopeProfiles& of) {
  f.message(1, "scope", of.scope);
  f.messages(2, "profiles", of.profiles);
}

template <typename Fields>
void describe(Fields& f, const Resource& of) {
  f.messages(1, "attributes", of.attributes);
}

template <typename Fields>
void describe(Fields& f, const ResourceProfiles& of) {
  f.message(1, "resource", of.resource);
  f.messages(2, "scopeProfiles", of.scopes);
}

template <typename Fields>
void describe(Fields& f, const Dictionary& of) {
  f.messages(1, "mappingTable", of.mappings);
  f.messages(2, "locationTable", of.locations);
  f.messages(3, "functionTable", of.functions);
  f.messages(4, "linkTable", of.links);
  f.texts(5, "stringTable", of.strings);
  f.messages(6, "attributeTable", of.attributes);
  f.messages(7, "stackTable", of.stacks);
}

template <typename Fields>
void describe(Fields& f, const Message& of) {
  f.messages(1, "resourceProfiles", of.resources);
  f.message(2, "dictionary", of.dictionary);
}

// Fields as protobuf has them.
class WireFields {
 public:
  template <typename Number>
  void number(int field, const char*, Number value) {
    message_.add(field, static_cast<std::int64_t>(value));
  }
  void number_always(int field, const char*, std::int64_t value) { message_.add_always(field, value); }
  void fixed_number(int field, const char*, std::uint64_t value) {
    if (value != 0) message_.add_fixed64(field, value);
  }
  template <typename Number>
  void numbers(int field, const char*, const std::vector<Number>& values) {
    if (values.empty()) return;
    std::vector<std::uint64_t> wide;
    for (const Number value : values) wide.push_back(static_cast<std::uint64_t>(std::int64_t{value}));
    message_.add(field, std::span<const std::uint64_t>(wide));
  }
  void fixed_numbers(int field, const char*, const std::vector<std::uint64_t>& values) {
    if (!values.empty()) message_.add_fixed64(field, std::span<const std::uint64_t>(values));
  }
  void text(int field, const char*, std::string_view value) {
    if (!value.empty()) message_.add(field, value);
  }
  void text_always(int field, const char*, std::string_view value) { message_.add(field, value); }
  void texts(int field, const char*, const std::vector<std::string>& values) {
    for (const std::string& value : values) message_.add(field, std::string_view(value));
  }
  void id(int field, const char* name, std::string_view bytes) { text(field, name, bytes); }
  template <typename Of>
  void message(int field, const char*, const Of& of) {
    message_.add(field, bytes_of(of));
  }
  template <typename Of>
  void messages(int field, const char*, const std::vector<Of>& all) {
    for (const Of& of : all) message_.add(field, bytes_of(of));
  }

  const ProtobufMessage& bytes() const { return message_; }

 private:
  template <typename Of>
  static ProtobufMessage bytes_of(const Of& of) {
    WireFields fields;
    describe(fields, of);
    return fields.message_;
  }

  ProtobufMessage message_;
};

// Fields as JSON has them. Those that are 0 or empty are left out here, too.
class JsonFields {
 public:
  explicit JsonFields(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }

  void number(int, const char* name, std::int32_t value) {
    if (value != 0) key(name), put(value);
  }
  void number(int, const char* name, std::int64_t value) {
    if (value != 0) key(name), put(value);
  }
  void number(int, const char* name, std::uint64_t value) {
    if (value != 0) key(name), put(value);
  }
  void number_always(int, const char* name, std::int64_t value) { key(name), put(value); }
  void fixed_number(int field, const char* name, std::uint64_t value) { number(field, name, value); }
  template <typename Number>
  void numbers(int, const char* name, const std::vector<Number>& values) {
    list(name, values, [&](Number value) { put(value); });
  }
  void fixed_numbers(int field, const char* name, const std::vector<std::uint64_t>& values) {
    numbers(field, name, values);
  }
  void text(int, const char* name, std::string_view value) {
    if (!value.empty()) key(name), out_ += json_text(value);
  }
  void text_always(int, const char* name, std::string_view value) { key(name), out_ += json_text(value); }
  void texts(int, const char* name, const std::vector<std::string>& values) {
    list(name, values, [&](const std::string& value) { out_ += json_text(value); });
  }
  void id(int, const char* name, std::string_view bytes) {
    if (bytes.empty()) return;
    key(name), out_ += '"' + hex_digits(bytes) + '"';
  }
  template <typename Of>
  void message(int, const char* name, const Of& of) {
    key(name), put_message(of);
  }
  template <typename Of>
  void messages(int, const char* name, const std::vector<Of>& all) {
    list(name, all, [&](const Of& of) { put_message(of); });
  }

 private:
  void key(const char* name) {
    if (out_.back() != '{') out_ += ',';
    out_ += fmt::format("\"{}\":", name);
  }
  void put(std::int32_t value) { out_ += std::to_string(value); }
  void put(std::int64_t value) { out_ += '"' + std::to_string(value) + '"'; }
  void put(std::uint64_t value) { out_ += '"' + std::to_string(value) + '"'; }
  template <typename Of>
  void put_message(const Of& of) {
    JsonFields fields(out_);
    describe(fields, of);
    fields.end();
  }
  template <typename Values, typename Put>
  void list(const char* name, const Values& values, const Put& put_one) {
    if (values.empty()) return;
    key(name), out_ += '[';
    for (bool first = true; const auto& value : values) {
      if (!first) out_ += ',';
      put_one(value);
      first = false;
    }
    out_ += ']';
  }

  std::string& out_;
};

}  // namespace

std::string to_protobuf(const Message& message) {
  WireFields fields;
  describe(fields, message);
  return fields.bytes().bytes();
}

std::string to_json(const Message& message) {
  std::string text;
  JsonFields fields(text);
  describe(fields, message);
  fields.end();
  return text;
}

}  // namespace luaspy::otlp
