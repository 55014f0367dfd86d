#pragma once
// What the values of other formats count.

#include <cstdint>
#include <string_view>

#include "base/sample.h"

namespace luaspy {

struct ValueUnit {
  Unit unit = Unit::samples;
  std::int64_t scale = 1;  // a value times this is in `unit`
};

// `type` and `unit`: "cpu" and "nanoseconds", "alloc_space" and "bytes", "samples" and "count", as pprof, OTLP and
// speedscope name them. What is not known is counted as it is.
constexpr ValueUnit value_unit(std::string_view type, std::string_view unit) {
  if (unit == "nanoseconds" || unit == "ns") return {Unit::nanoseconds, 1};
  if (unit == "microseconds" || unit == "us") return {Unit::nanoseconds, 1'000};
  if (unit == "milliseconds" || unit == "ms") return {Unit::nanoseconds, 1'000'000};
  if (unit == "seconds" || unit == "s") return {Unit::nanoseconds, 1'000'000'000};
  if (unit == "bytes") return {Unit::bytes, 1};
  if (unit == "kilobytes") return {Unit::bytes, 1024};
  if (unit == "megabytes") return {Unit::bytes, 1024 * 1024};
  const bool of_objects = type.find("object") != type.npos || type.find("alloc") != type.npos;
  return {of_objects ? Unit::objects : Unit::samples, 1};
}

}  // namespace luaspy
