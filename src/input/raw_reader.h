#pragma once
// Reads raw recordings; docs/raw-format.md describes them byte by byte.

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

#include "base/result.h"
#include "profile/profile.h"
#include "profile/shape.h"

namespace luaspy {

// What of a recording is read. Times are since it began.
struct RawWindow {
  std::int64_t from_ns = 0;
  std::optional<std::int64_t> to_ns;
  std::string thread;  // its number, or a part of its name; "": all
};

// A raw recording as a profile; its bytes are not trusted. What follows a damaged or unfinished
// block is left out, and `about.complete` is false then. An error if it is no raw recording at all,
// or one of a version or a unit that is not known.
Result<Profile> read_raw(std::istream& in, const Shape& shape, const RawWindow& window = {}, bool keeps_order = true);

}  // namespace luaspy
