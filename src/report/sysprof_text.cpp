#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "input/luajit_reader.h"
#include "input/sysprof_stream.h"
#include "report/luajit_text.h"

namespace luaspy {
namespace {

// The frames of a sample, as the reference writes them.
std::string stack_text(const SysprofSample& sample, const LuajitSymbols& symbols) {
  using Kind = SysprofSample::Call::Kind;
  if (sample.state == SysprofSample::State::trace) return symbols.text(sample.trace);
  std::string text;
  for (const SysprofPart& part : joined_stack(sample, symbols)) {
    if (!text.empty()) text += ';';
    if (!part.is_call) {
      text += symbols.text(sample.native[part.index]);
      continue;
    }
    const SysprofSample::Call& call = sample.calls[part.index];
    text += call.kind == Kind::fast ? symbols.fast_function(call.ffid) : symbols.text(call.place);
  }
  return text;
}

}  // namespace

Result<std::string> sysprof_text(std::istream& in, std::string& torn) {
  constexpr std::size_t most_stacks = 1 << 20, longest_stack = 1 << 20;
  ByteReader bytes(in);
  LuajitSymbols symbols;
  const Result<std::string> profiler = read_luajit_head(bytes, symbols);
  if (!profiler) return profiler.error();
  if (*profiler != "ljp") return Error{Cause::usage, "This is a stream of LuaJIT's memprof: its text is -f memprof."};
  std::map<std::string, std::int64_t> counts;
  std::size_t text_bytes = 0;
  torn = each_sysprof_sample(bytes, symbols, [&](const SysprofSample& sample) {
    const auto [place, added] = counts.try_emplace(printable(stack_text(sample, symbols), longest_stack), 0);
    ++place->second;
    if (added) text_bytes += place->first.size();
    return counts.size() <= most_stacks && text_bytes <= most_text;
  });
  std::string text;
  for (const auto& [stack, count] : counts) text += fmt::format("{};\t{}\n", stack, count);
  return text;
}

}  // namespace luaspy
