#include "dump/compiler_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "jitwatch/jit_watcher.h"
#include "jitwatch/jit_words.h"
#include "luastate/names.h"

namespace luaspy {
namespace {

// The memory that others use, too.
class SameMemory : public Memory {
 public:
  explicit SameMemory(const Memory& memory) : memory_(memory) {}
  bool read(Address address, std::span<std::byte> into) const override { return memory_.read(address, into); }

 private:
  const Memory& memory_;
};

CompilerFunction function_of(const JitSeen& seen, const JitFunction& function) {
  CompilerFunction result = {chunk_name(function.place.source), function.place.line_defined, function.is_off, {}, {}};
  for (const auto& [number, trace] : seen.knowledge->traces) {
    if (trace.prototype == function.prototype) result.traces.push_back(number);
  }
  for (const JitStart& start : function.starts)
    result.parts.push_back({start.position != 0, start.first_line, start.last_line,
                            why_of(seen, finding_at(*seen.knowledge, function, start))});
  return result;
}

std::string sentence(const CompilerPart& part) {
  const std::string text = why_text(part.why);
  if (!part.is_loop) return "calls: " + text;
  if (part.first_line == 0) return "a loop: " + text;
  if (part.first_line == part.last_line) return fmt::format("loop {}: {}", part.first_line, text);
  return fmt::format("loop {}-{}: {}", part.first_line, part.last_line, text);
}

}  // namespace

bool CompilerPart::is_decided() const {
  return why.why == WhyInterpreted::blacklisted || why.why == WhyInterpreted::aborted ||
         why.why == WhyInterpreted::compiled;
}

bool CompilerFunction::is_decided() const {
  return is_off || !traces.empty() || std::ranges::any_of(parts, &CompilerPart::is_decided);
}

std::vector<std::string> decisions_of(const CompilerFunction& function) {
  std::vector<std::string> sentences;
  if (function.parts.empty()) return sentences;
  const JitWhy& of_calls = function.parts.front().why;
  if (of_calls.why == WhyInterpreted::compiler_off || of_calls.why == WhyInterpreted::function_off)
    return {why_text(of_calls)};
  for (const CompilerPart& part : function.parts) {
    if (part.is_decided()) sentences.push_back(sentence(part));
  }
  if (sentences.empty()) sentences.push_back(why_text(of_calls));
  return sentences;
}

CompilerLook look_at_compiler(const Memory& memory, pid_t pid, const Lua& lua, Address G, Names& names) {
  JitWatcher watcher(std::make_unique<SameMemory>(memory), pid, lua, G, system::Clock::now());
  // What is being recorded at a look is not over yet.
  constexpr int looks = 8;
  for (int i = 0; i < looks; ++i) watcher.look();
  watcher.want(names.known_prototypes());
  watcher.survey();
  const JitKnowledge& knowledge = watcher.knowledge();
  const JitSeen seen = {&knowledge, &watcher.reader(),
                        [&](Address closure) { return c_function_name(names, knowledge, closure); }};
  CompilerLook look = {
      knowledge.last.has_value(), knowledge.is_on, knowledge.traces.size(), knowledge.has_all_functions, {}};
  for (const auto& [prototype, function] : knowledge.functions)
    look.functions.emplace(prototype, function_of(seen, function));
  return look;
}

}  // namespace luaspy
