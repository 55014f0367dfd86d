#pragma once
// A span of a distributed trace, as trace_label names it: "TRACE-SPAN", 32 and 16 hexadecimal digits in small letters,
// as in the header "traceparent" (W3C Trace Context, 3.2.2).

#include <optional>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace luaspy {

struct Span {
  std::string trace, id;  // 16 and 8 bytes
};

inline std::string text_of(const Span& span) { return hex_digits(span.trace) + '-' + hex_digits(span.id); }

// What text_of() has written. Ids of zeros alone are no ids.
inline std::optional<Span> span_of_text(std::string_view text) {
  constexpr std::size_t trace_digits = 32, id_digits = 16;
  if (text.size() != trace_digits + 1 + id_digits || text[trace_digits] != '-') return std::nullopt;
  const std::optional<std::string> trace = bytes_of_hex(text.substr(0, trace_digits)),
                                   id = bytes_of_hex(text.substr(trace_digits + 1));
  const auto is_id = [](const std::string& bytes) { return bytes.find_first_not_of('\0') != bytes.npos; };
  if (!trace || !id || !is_id(*trace) || !is_id(*id)) return std::nullopt;
  Span span = {*trace, *id};
  return text_of(span) == text ? std::optional(std::move(span)) : std::nullopt;
}

}  // namespace luaspy
