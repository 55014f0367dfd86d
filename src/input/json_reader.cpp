#include "input/json_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "input/otlp_json.h"
#include "input/otlp_reader.h"
#include "input/source_stream.h"
#include "input/speedscope_reader.h"

namespace luaspy {
namespace {

using Json = nlohmann::json;

// nullopt: it is no JSON, or is nested deeper than any of these formats is.
std::optional<Json> parsed(std::string_view text) {
  constexpr int deepest = 32;
  bool is_too_deep = false;
  const auto see = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return !is_too_deep;
  };
  Json value = Json::parse(text, see, false);
  return value.is_discarded() || is_too_deep ? std::nullopt : std::optional(std::move(value));
}

// A message in each line, as a Collector writes them into a file.
Result<std::string> read_messages(std::string_view text, RecordingPart& part) {
  OtlpReader reader(part);
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view message = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(message.size() + 1, text.size()));
    if (message.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    const std::optional<Json> json = parsed(message);
    if (!json) return fmt::format("line {}: this is no JSON", line);
    const std::string wrong = reader.read(otlp_protobuf(*json));
    if (!wrong.empty()) return fmt::format("line {}: {}", line, wrong);
  }
  return std::string();
}

}  // namespace

bool is_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         (head.find("\"resourceProfiles\"") != std::string_view::npos ||
          head.find("\"profiles\"") != std::string_view::npos || head.find("\"shared\"") != std::string_view::npos);
}

Result<std::string> read_json(std::istream& in, RecordingPart& part) {
  const Result<std::string> text = read_all_of(in);
  if (!text) return text.error();
  if (const std::optional<Json> json = parsed(*text)) {
    if (is_speedscope(*json)) return read_speedscope(*json, part);
    if (is_otlp(*json)) return OtlpReader(part).read(otlp_protobuf(*json));
    return Error{Cause::usage, "This is JSON, but neither a file of speedscope nor profiles of OpenTelemetry."};
  }
  const std::optional<Json> first = parsed(std::string_view(*text).substr(0, text->find('\n')));
  if (first && is_otlp(*first)) return read_messages(*text, part);
  return Error{Cause::usage, "This is no whole JSON: its end is missing, or it is damaged."};
}

}  // namespace luaspy
