#include "base/time_text.h"

namespace luaspy {
namespace {

std::string text_of(const std::tm& time, const char* format) {
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &time)};
}

}  // namespace

std::string utc_text(std::time_t time, const char* format) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  return text_of(parts, format);
}

std::string local_text(std::time_t time, const char* format) {
  std::tm parts{};
  localtime_r(&time, &parts);
  return text_of(parts, format);
}

}  // namespace luaspy
