#pragma once
// The one place that tells what a file is, by its content, and reads it: recordings of luaspy and those of others.

#include <cstdint>
#include <functional>
#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

// What a file that is no recording of luaspy may be.
struct FileKind {
  std::string_view name;  // for people: "folded stacks"
  // Whether it may be this, by its first bytes, up to 64 KiB.
  bool (*is)(std::string_view head);
  // Reports all of it to `part`, from its first byte on. Returns where the file is damaged, and how ("line 5: no number
  // at its end"), or "" if it is whole: what was reported until then counts. An Error if nothing of it can be read.
  // The bytes are not trusted. It may set Metadata::kind, if it knows better than `name`, and timed.
  Result<std::string> (*read)(std::istream& in, RecordingPart& part);
};
// In the order in which they are tried.
std::span<const FileKind> file_kinds();

// Reads a file as read_raw() does, or as what it is otherwise; it may be compressed by gzip.
Result<Profile> read_recording(std::istream& in, const ViewOptions& shape, const RawWindow& window = {},
                               bool keeps_order = true, const std::function<void(std::int64_t)>& seen = {},
                               RawEvents* events = nullptr);

}  // namespace luaspy
