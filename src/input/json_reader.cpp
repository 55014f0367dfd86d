#include "input/json_reader.h"

#include <fmt/format.h>

#include "base/parsed_json.h"
#include "input/otlp_json.h"
#include "input/otlp_reader.h"
#include "input/source_stream.h"
#include "input/speedscope_reader.h"

namespace luaspy {
namespace {

constexpr std::size_t deepest = 32;  // more than any of these formats has

// A message in each line, as a Collector writes them into a file.
Result<std::string> read_messages(std::string_view text, RecordingPart& part) {
  OtlpReader reader(part);
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view message = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(message.size() + 1, text.size()));
    if (message.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    const std::optional<Json> json = parsed_json(message, deepest);
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
  if (const std::optional<Json> json = parsed_json(*text, deepest)) {
    if (is_speedscope(*json)) return read_speedscope(*json, part);
    if (is_otlp(*json)) return OtlpReader(part).read(otlp_protobuf(*json));
    return Error{Cause::usage, "This is JSON, but neither a file of speedscope nor profiles of OpenTelemetry."};
  }
  const std::optional<Json> first = parsed_json(std::string_view(*text).substr(0, text->find('\n')), deepest);
  if (first && is_otlp(*first)) return read_messages(*text, part);
  return Error{Cause::usage, "This is no whole JSON: its end is missing, or it is damaged."};
}

}  // namespace luaspy
