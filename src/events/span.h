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

// nullopt: these are no ids of a span. Of zeros alone there is none.
inline std::optional<Span> span_of(std::string trace, std::string id) {
  constexpr std::size_t trace_size = 16, id_size = 8;
  const auto is_id = [](const std::string& bytes) { return bytes.find_first_not_of('\0') != bytes.npos; };
  if (trace.size() != trace_size || id.size() != id_size || !is_id(trace) || !is_id(id)) return std::nullopt;
  return Span{std::move(trace), std::move(id)};
}

inline std::string text_of(const Span& span) { return hex_digits(span.trace) + '-' + hex_digits(span.id); }

// What text_of() has written.
inline std::optional<Span> span_of_text(std::string_view text) {
  constexpr std::size_t trace_digits = 32;
  if (text.size() <= trace_digits || text[trace_digits] != '-') return std::nullopt;
  const std::optional<std::string> trace = bytes_of_hex(text.substr(0, trace_digits)),
                                   id = bytes_of_hex(text.substr(trace_digits + 1));
  std::optional<Span> span = trace && id ? span_of(*trace, *id) : std::nullopt;
  return span && text_of(*span) == text ? span : std::nullopt;
}

}  // namespace luaspy
