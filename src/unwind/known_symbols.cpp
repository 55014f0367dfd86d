#include "unwind/known_symbols.h"

namespace luaspy {

MovedSymbols KnownSymbols::of(int file, const std::string& path, Address bias) {
  constexpr std::size_t most_tables = 512;  // a family of programs that are made anew all the time
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) return {std::make_shared<const SymbolTable>(file, path, bias), 0};
  if (tables_.size() >= most_tables) tables_.clear();
  Known& known = tables_[version_of(status)];
  if (known.table == nullptr) known = {std::make_shared<const SymbolTable>(file, path, bias), bias};
  return {known.table, bias - known.bias};
}

}  // namespace luaspy
