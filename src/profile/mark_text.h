#pragma once
// Marks as text for people.

#include <array>
#include <string>
#include <vector>

#include "events/mark.h"

namespace luaspy {

// "abort a.lua:14", "flush", "trace 3 a.lua:14".
std::string title_of(const Mark& mark);
// What else is known of it: "NYI: bytecode UCLO; failed attempts: 2". "": nothing.
std::string detail_of(const Mark& mark);
std::array<std::int64_t, mark_kinds> counts_of(const std::vector<Mark>& marks);  // by Mark::Kind
// "3 aborts, 1 place blacklisted, 2 flushes, 12 new traces"; "": there are no marks.
std::string marks_text(const std::vector<Mark>& marks);
// The same marks, in the order of time.
std::vector<const Mark*> in_order(const std::vector<Mark>& marks);

}  // namespace luaspy
