#pragma once
// Dates and times, from 1970 to 9999, in formats of strftime() that have only numbers and so are the same in all
// locales.

#include <ctime>
#include <string>

namespace luaspy {

std::string utc_text(std::time_t time, const char* format);
std::string local_text(std::time_t time, const char* format);

}  // namespace luaspy
