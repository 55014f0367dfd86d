#pragma once
// What a server has its Lua do, for --label request: a request of nginx, a script or a function of Redis, for a
// proxy of HAProxy.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "base/sample.h"
#include "base/word_hash.h"
#include "events/label_table.h"

namespace luaspy {

// Of what a server has made up, or does on its own.
inline constexpr std::string_view no_request = "(no request)";

struct HostRequest {
  std::string text{};          // as the label shows it; "": there is none
  RequestIdentity identity{};  // which of all that have this text
  std::string trace{};         // the caller's span, as trace_label has it; "": it has told none
  std::string phase{};         // of nginx, as ngx.get_phase names it; "": there is none, or nobody wants to know
};

// The text at `at`, up to its zero, in memory that the caller gives: in the stop, nothing is allocated. Without its end
// if it is longer than the room; "": it cannot be read.
inline std::string_view read_text(const Memory& memory, Address at, std::span<char> room) {
  constexpr std::size_t piece = 32;  // bytes that are read at a time: they lie in one page
  std::size_t size = 0;
  while (size + piece <= room.size()) {
    const std::span<char> next = room.subspan(size, piece - (at + size) % piece);
    if (!memory.read(at + size, std::as_writable_bytes(next))) return {};
    const auto end = std::ranges::find(next, '\0');
    size += static_cast<std::size_t>(end - next.begin());
    if (end != next.end()) break;
  }
  return {room.data(), size};
}

// RequestIdentity::id of what the server keeps there, and knows to have begun then: the same memory serves another
// request later.
inline std::uint64_t request_id(Address at, std::uint64_t begun) {
  std::uint64_t id = hash_basis;
  mix(id, at);
  mix(id, begun);
  return id;
}

}  // namespace luaspy
