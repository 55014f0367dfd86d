#pragma once
// Something that happened at one moment of a recording and is no sample: what LuaJIT's compiler has decided.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace luaspy {

struct Mark {
  enum class Kind : std::uint8_t {
    abort,        // the recording of a root trace was given up
    blacklisted,  // and no trace will begin there again
    flush,        // all traces were thrown away
    trace,        // there is a new one
  } kind = Kind::abort;
  std::int64_t at_ns = 0;  // since the recording began
  int pid = 0;
  std::string file;         // where the trace begins, as frames have it; "": not known, or a flush
  int line = 0;             // 0: not known
  std::int64_t number = 0;  // abort, blacklisted: how many attempts have failed by then; trace: its number
  std::string text;         // abort, blacklisted: why, in LuaJIT's words; trace: its link and size; ""
  bool operator==(const Mark&) const = default;
};
inline constexpr std::size_t mark_kinds = 4;
// A recording keeps no more.
inline constexpr std::size_t most_marks = 100'000;

constexpr std::string_view name(Mark::Kind kind) {
  constexpr std::array<std::string_view, mark_kinds> names = {"abort", "blacklisted", "flush", "trace"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace luaspy
