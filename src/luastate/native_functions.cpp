#include "luastate/native_functions.h"

namespace luaspy {

std::string_view without_prefix(std::string_view symbol) {
  const std::size_t at = symbol.rfind("_lua");
  return at != symbol.npos ? symbol.substr(at + 1) : symbol;
}

bool is_lua_name(std::string_view symbol) {
  symbol = without_prefix(symbol);
  if (symbol.starts_with("lj_") || symbol.starts_with("luaopen_") || symbol.starts_with("luaJIT_")) return true;
  if (!symbol.starts_with("lua")) return false;
  symbol.remove_prefix(3);
  return symbol.starts_with('_') || (symbol.size() > 1 && symbol[0] >= 'A' && symbol[0] <= 'Z' && symbol[1] == '_');
}

}  // namespace luaspy
