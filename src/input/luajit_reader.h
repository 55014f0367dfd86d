#pragma once
// Streams of LuaJIT's own profilers, sysprof and memprof, as recordings.

#include <istream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "input/byte_reader.h"
#include "input/luajit_symbols.h"
#include "input/recording_part.h"

namespace luaspy {

bool is_luajit_stream(std::string_view head);

// sysprof: each sample, in Unit::samples, because the stream does not say how often it samples. memprof: what was
// allocated, in bytes or objects: a reallocation counts by how much it grows, and is no new object. With
// RawWindow::live, what was not freed until the end.
// Returns where the stream is damaged, and how; "": it is whole.
Result<std::string> read_luajit_stream(std::istream& in, RecordingPart& part);

// Reads the heads of a stream up to its first event. Which profiler it is of: "ljp" or "ljm".
Result<std::string> read_luajit_head(ByteReader& in, LuajitSymbols& symbols);

}  // namespace luaspy
