#include "input/recording_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/protobuf_fields.h"
#include "input/folded_reader.h"
#include "input/luajit_reader.h"
#include "input/perf_script_reader.h"
#include "input/pprof_reader.h"
#include "input/raw_reader.h"
#include "input/source_stream.h"
#include "profile/raw_format.h"

namespace luaspy {
namespace {

bool is_text(std::string_view head) {
  return std::ranges::none_of(head, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
  });
}

// The first line that is no comment.
std::string_view first_line(std::string_view head) {
  while (!head.empty()) {
    std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) return line;
  }
  return {};
}

bool may_be_folded(std::string_view head) { return is_text(head) && is_folded(first_line(head)); }

bool may_be_perf_script(std::string_view head) { return is_text(head) && is_perf_script(head); }

// The head may end within the first field.
bool begins_as_protobuf(std::string_view head) {
  ProtobufFields fields(head);
  const std::optional<ProtobufFields::Field> first = fields.next();
  const std::uint32_t tag = head.empty() ? 0 : static_cast<unsigned char>(head.front());
  return first ? first->number <= 15 : head.size() == HeadedStream::most_head && (tag == 0x0a || tag == 0x12);
}

bool may_be_pprof(std::string_view head) { return !is_text(head) && begins_as_protobuf(head); }

constexpr std::array kinds = {
    FileKind{"a stream of LuaJIT", is_luajit_stream, read_luajit_stream},
    FileKind{"the text of perf script", may_be_perf_script, read_perf_script},
    FileKind{"folded stacks", may_be_folded, read_folded},
    FileKind{"a profile of pprof", may_be_pprof, read_pprof},
};

bool is_raw(std::string_view head) { return head.starts_with(raw::magic) || head.starts_with(raw::page_begin); }

// Formats of other profilers that are in JSON (speedscope, OpenTelemetry) are objects.
bool is_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' && is_text(head);
}

Error no_kind(std::string_view head) {
  if (head.empty()) return {Cause::usage, "The file is empty."};
  if (head.starts_with("PERFILE2"))
    return {Cause::usage, "This is a file of perf itself. `perf script` makes a text of it that luaspy reads."};
  const std::string_view what = is_json(head) ? "This is JSON, which luaspy does not read."
                                              : "This is nothing that luaspy reads.";
  return {Cause::usage,
          fmt::format("{} It reads its own recordings and pages, and of others: pprof, folded stacks, the "
                      "text of perf script, and LuaJIT's sysprof and memprof.",
                      what)};
}

}  // namespace

std::span<const FileKind> file_kinds() { return kinds; }

Result<Profile> read_recording(std::istream& in, const ViewOptions& shape, const RawWindow& window, bool keeps_order,
                               const std::function<void(std::int64_t)>& seen, RawEvents* events) {
  std::function<void(std::int64_t)> seen_of_file;  // read_raw() counts by itself
  UnpackedFile file(in, &seen_of_file);
  if (is_raw(file.head())) return read_raw(file.bytes(), shape, window, keeps_order, seen, events);
  const auto kind = std::ranges::find_if(kinds, [&](const FileKind& each) { return each.is(file.head()); });
  if (kind == kinds.end()) return no_kind(file.head());
  seen_of_file = seen;
  RecordingPart part(shape, window, keeps_order, events);
  Metadata& about = part.about();
  about.kind = kind->name, about.timed = false;
  Result<std::string> torn = kind->read(file.bytes(), part);
  if (!torn) return torn.error();
  if (!file.torn().empty()) torn = file.torn();
  about.torn = *torn, about.complete = torn->empty();
  return part.finish(torn->empty());
}

}  // namespace luaspy
