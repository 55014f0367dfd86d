#pragma once
// What a server has its Lua do, for --label request: a request of nginx, a script or a function of Redis.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "base/sample.h"
#include "base/word_hash.h"
#include "events/label_table.h"

namespace luaspy {

struct HostRequest {
  std::string text{};          // as the label shows it; "": there is none
  RequestIdentity identity{};  // which of all that have this text
  std::string trace{};         // the caller's span, as trace_label has it; "": it has told none
  std::string phase{};         // of nginx, as ngx.get_phase names it; "": there is none, or nobody wants to know
};

// RequestIdentity::id of what the server keeps there, and knows to have begun then: the same memory serves another
// request later.
inline std::uint64_t request_id(Address at, std::uint64_t begun) {
  std::uint64_t id = hash_basis;
  mix(id, at);
  mix(id, begun);
  return id;
}

}  // namespace luaspy
