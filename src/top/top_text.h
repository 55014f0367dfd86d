#pragma once
// Numbers and words of top's screen and of its plain tables.

#include <string>
#include <string_view>
#include <vector>

#include "top/top_lines.h"

namespace luaspy {

std::string time_text(std::int64_t ns);  // in at most 8 columns
std::string share_text(double percent);
TopStyle style_of_share(double percent);
TopStyle style_of_kind(Frame::Kind kind);

std::vector<std::string> doubts_of(const TopCounts& counts, const TopTarget& target);
double share(std::int64_t part, std::int64_t of);                                              // %; 0 if `of` is 0
std::string threads_text(const TopCounts& counts, const TopTarget& target, bool since_start);  // "4 threads, 2 ran"
// "Lua heap 12.3 MiB, +1.2 MiB/s, at least 3.0 cycles/s", or the first part of it that fits into
// `width` columns.
std::string heap_line(const TopHeap& heap, bool since_start, int width);
std::string_view name(Activity activity);
// unknown, so that no number is shown: PUC Lua's collector until it has been seen. absent: machine
// code in PUC Lua.
enum class Told { yes, unknown, absent };
Told told(const TopCounts& counts, Activity activity);

}  // namespace luaspy
