#pragma once
// One function of a profile: who calls it, and what it calls.

#include "base/result.h"
#include "report/text_style.h"

namespace luaspy {

struct FunctionView {
  struct Relation {
    std::optional<std::uint32_t> function;  // index into FunctionTable; nullopt: no caller, the function is the
                                            // outermost
    std::int64_t cost = 0;                  // of the samples in which one calls the other, each sample counted once
  };
  std::uint32_t function = 0;
  Cost cost;
  std::int64_t recursive = 0;              // of the samples in which it is on the stack more than once
  std::vector<Relation> callers, callees;  // most expensive first; a function that calls itself is its own caller
};
FunctionView function_view(const Profile& profile, const FunctionTable& functions, std::uint32_t function, By by);

// The functions that match `wanted`: those with that name; else those with that text; else those
// whose text it matches as a regular expression, or contains literally. Most expensive first. An
// error names similar functions.
Result<std::vector<std::uint32_t>> find_functions(const FunctionTable& functions, const std::vector<Cost>& costs,
                                                  const std::string& wanted);

std::string function_text(const Profile& profile, const FunctionTable& functions, const FunctionView& view,
                          const TextStyle& style);

}  // namespace luaspy
