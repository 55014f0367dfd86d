#pragma once
// Reads raw recordings; docs/raw-format.md describes them byte by byte.

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

#include "base/result.h"
#include "input/recording_events.h"
#include "profile/profile.h"
#include "profile/stack_view.h"

namespace luaspy {

// Reads a raw recording, or the one that a flame graph page carries, as a profile; its bytes are not
// trusted. Everything after a damaged or unfinished block is left out, and `about.complete` is false
// then. Returns an error if it is not a raw recording, or its version or unit is unknown. `seen`, if
// set, is called now and then with how many bytes of the file have been read; `events`, with what was read.
Result<Profile> read_raw(std::istream& in, const ViewOptions& shape, const RawWindow& window = {},
                         bool keeps_order = true, const std::function<void(std::int64_t)>& seen = {},
                         RawEvents* events = nullptr);

// The bytes of a raw recording, or of the one that a page carries; empty if there are more than
// `most`. They are not checked.
std::string raw_bytes(std::istream& in, std::size_t most);

}  // namespace luaspy
