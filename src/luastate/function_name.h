#pragma once
// THE RULE for what a function is called: one name for each function, in every command and file.
//
// 1. Where it lives (LoadedFunctions): `M.f`, `Account:audit`, `handlers.accounts`.
// 2. Else as the source text defines it (Definition): `function M.f`, `local function f`, `f = function` …
// 3. Else as its caller calls it (bytecode.h), but not across a tail call: names.cpp.
// 4. Else `function`, and its place shows which one.
//
// If 1 and 2 disagree, 1 is right: it is what others can type. But where the source's own words name
// a class, which is a word with a capital letter and a small one, they are what people say:
//   - `Account:audit`, and not `bank.Account:audit`, nor `bank.account:audit` if the module is the class;
//   - for a method that was copied into other classes: the class in which it was written.
// A method has a colon: the source says so, or its first parameter is `self`.

#include <optional>
#include <string>
#include <string_view>

#include "luastate/loaded_functions.h"

namespace luaspy {

// 1 and 2.
struct FunctionName {
  std::string text;     // empty if there is neither
  bool is_own = false;  // it is known where the function lives (Frame::own_name); of a wrapper: in several places
};
// `own`: the name of this closure if it is known; `definition`: empty if it is not known.
FunctionName function_name(const LoadedFunctions::Function* loaded, const LoadedFunctions::Name* own,
                           std::string_view definition, bool takes_self);

// The same for a C function.
std::string c_function_name(const LoadedFunctions::Function* loaded);

}  // namespace luaspy
