#include "stack/native_names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "stack/ghc_name.h"

namespace luaspy {

// Symbol versions (name@VERSION, name@@VERSION) and C++ parameters do not help in a profile;
// overloads of one function are distinguished by their start.
std::string demangled(std::string name) {
  name.resize(std::min(name.find('@'), name.size()));
  int status = 0;
  char* const text = name.starts_with("_Z") ? abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status) : nullptr;
  if (text == nullptr) return ghc_name(name).value_or(name);
  std::string result = text;
  std::free(text);
  // The parameters are the last parentheses outside of template arguments; operator() has a pair in
  // its name.
  int depth = 0;
  for (std::size_t at = 1; at < result.size(); ++at) {
    if (result[at] == '<') ++depth;
    if (result[at] == '>' && result[at - 1] != '-') --depth;
    if (result[at] != '(' || depth > 0 || result.compare(at, 2, "()") == 0) continue;
    result.resize(at);
    break;
  }
  return result;
}

Frame native_name(const Modules& modules, const NativeFrame& frame) {
  Frame result;
  result.kind = Frame::Kind::native;
  const Module* const module = modules.find(frame.lookup);
  if (module == nullptr) {
    result.name = modules.executes(frame.lookup) ? "[code without a file]" : "[unknown code]";
    return result;
  }
  result.file = printable(module->name());
  const std::optional<Symbol> symbol = module->symbol(frame.lookup);
  // .dynsym alone has few symbols: a symbol that starts before the function belongs to another one.
  if (symbol && (frame.function == 0 || symbol->start >= frame.function || frame.lookup < frame.function))
    result.name = printable(demangled(symbol->name));
  else if (frame.function != 0) result.name = fmt::format("{}+{:#x}", result.file, frame.function - module->bias());
  else result.name = result.file;
  return result;
}

}  // namespace luaspy
