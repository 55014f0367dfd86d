#pragma once
// The table of top as plain text, for scripts: always the same columns, full names, seconds as
// numbers.

#include <string>

#include "top/top_counts.h"

namespace luaspy {

// What ran within the window. Lines that begin with "#" describe the table; an empty line ends it.
std::string plain_table(const TopCounts& counts, const TopTarget& target);

}  // namespace luaspy
