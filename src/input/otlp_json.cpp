#include "input/otlp_json.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/hex.h"
#include "base/varint.h"

namespace luaspy {
namespace {

enum class JsonKind : std::uint8_t { number, text, digits, fixed, message };

// A field: its name in JSON, its number, and what it has. A list of these has one after another.
struct JsonField {
  std::string_view name;
  std::uint32_t number = 0;
  JsonKind kind = JsonKind::number;
  std::span<const JsonField> fields{};  // of a message
};

namespace schema {

// profiles.proto, common.proto and resource.proto of opentelemetry-proto 1.11.
constexpr JsonField any_value[] = {{"stringValue", 1, JsonKind::text}, {"intValue", 3}, {"stringValueStrindex", 8}};
constexpr JsonField key_value[] = {
    {"key", 1, JsonKind::text}, {"value", 2, JsonKind::message, any_value}, {"keyStrindex", 3}};
constexpr JsonField attribute[] = {{"keyStrindex", 1}, {"value", 2, JsonKind::message, any_value}};
constexpr JsonField value_type[] = {{"typeStrindex", 1}, {"unitStrindex", 2}};
constexpr JsonField mapping[] = {{"memoryStart", 1}, {"fileOffset", 3}, {"filenameStrindex", 4}};
constexpr JsonField line[] = {{"functionIndex", 1}, {"line", 2}};
constexpr JsonField location[] = {
    {"mappingIndex", 1}, {"address", 2}, {"lines", 3, JsonKind::message, line}, {"attributeIndices", 4}};
constexpr JsonField function[] = {
    {"nameStrindex", 1}, {"systemNameStrindex", 2}, {"filenameStrindex", 3}, {"startLine", 4}};
constexpr JsonField stack[] = {{"locationIndices", 1}};
constexpr JsonField link[] = {{"traceId", 1, JsonKind::digits}, {"spanId", 2, JsonKind::digits}};
constexpr JsonField sample[] = {{"stackIndex", 1},
                                {"attributeIndices", 2},
                                {"linkIndex", 3},
                                {"values", 4},
                                {"timestampsUnixNano", 5, JsonKind::fixed}};
constexpr JsonField profile[] = {{"sampleType", 1, JsonKind::message, value_type},
                                 {"samples", 2, JsonKind::message, sample},
                                 {"timeUnixNano", 3},
                                 {"durationNano", 4},
                                 {"periodType", 5, JsonKind::message, value_type},
                                 {"period", 6}};
constexpr JsonField scope[] = {{"name", 1, JsonKind::text}};
constexpr JsonField scope_profiles[] = {{"scope", 1, JsonKind::message, scope},
                                        {"profiles", 2, JsonKind::message, profile}};
constexpr JsonField resource[] = {{"attributes", 1, JsonKind::message, key_value}};
constexpr JsonField resource_profiles[] = {{"resource", 1, JsonKind::message, resource},
                                           {"scopeProfiles", 2, JsonKind::message, scope_profiles}};
constexpr JsonField dictionary[] = {{"mappingTable", 1, JsonKind::message, mapping},
                                    {"locationTable", 2, JsonKind::message, location},
                                    {"functionTable", 3, JsonKind::message, function},
                                    {"linkTable", 4, JsonKind::message, link},
                                    {"stringTable", 5, JsonKind::text},
                                    {"attributeTable", 6, JsonKind::message, attribute},
                                    {"stackTable", 7, JsonKind::message, stack}};
constexpr JsonField message_fields[] = {{"resourceProfiles", 1, JsonKind::message, resource_profiles},
                                        {"dictionary", 2, JsonKind::message, dictionary}};

}  // namespace schema

// Numbers of 64 bits are text.
std::optional<std::uint64_t> number_of(const Json& value) {
  if (const std::optional<std::uint64_t> whole = value.as_unsigned()) return whole;
  if (const std::optional<std::int64_t> negative = value.as_integer()) return static_cast<std::uint64_t>(*negative);
  const std::string* const text = value.as_text();
  if (text == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(static_cast<std::uint64_t>(number))
                                                                    : std::nullopt;
}

std::string bytes_of(const Json& object, std::span<const JsonField> fields);

void put_value(const Json& value, const JsonField& field, std::string& bytes) {
  constexpr std::uint32_t varint = 0, fixed64 = 1, length_delimited = 2;
  const auto put_tag = [&](std::uint32_t type) { put_varint(bytes, field.number << 3 | type); };
  if (field.kind == JsonKind::number || field.kind == JsonKind::fixed) {
    const std::optional<std::uint64_t> number = number_of(value);
    if (!number) return;
    put_tag(field.kind == JsonKind::fixed ? fixed64 : varint);
    if (field.kind == JsonKind::number) return put_varint(bytes, *number);
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(*number >> (8 * i) & 0xff);
    return;
  }
  // An entry of a table has its place even if it is nothing.
  std::string inside;
  if (field.kind == JsonKind::message) inside = bytes_of(value, field.fields);
  else if (const std::string* const text = value.as_text()) inside = *text;
  if (field.kind == JsonKind::digits) inside = bytes_of_hex(inside).value_or("");
  put_tag(length_delimited);
  put_varint(bytes, inside.size());
  bytes += inside;
}

// As deep as the messages are, whatever the text is.
std::string bytes_of(const Json& object, std::span<const JsonField> fields) {
  std::string bytes;
  for (const JsonField& field : fields) {
    const Json* const value = object.find(field.name);
    if (value == nullptr) continue;
    if (!value->is_array()) put_value(*value, field, bytes);
    for (const Json& each : value->elements()) put_value(each, field, bytes);
  }
  return bytes;
}

}  // namespace

bool is_otlp(const Json& message) { return message.find("resourceProfiles") != nullptr; }

std::string otlp_protobuf(const Json& message) { return bytes_of(message, schema::message_fields); }

}  // namespace luaspy
