#pragma once
// The table of top as plain text, for scripts: the same columns always, names in full, seconds as
// numbers.

#include <string>

#include "top/top_counts.h"

namespace luaspy {

// What ran in the window. Lines that begin with "#" are about the table; an empty line ends it.
std::string plain_table(const TopCounts& counts, const TopTarget& target);

}  // namespace luaspy
