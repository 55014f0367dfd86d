#pragma once
// Names of symbols that the Glasgow Haskell Compiler made: "base_GHCziBase_map_info" is
// base:GHC.Base.map.

#include <optional>
#include <string>
#include <string_view>

namespace luaspy {

// nullopt: it is not such a name, or has nothing to decode. Symbols are PACKAGE_MODULE_NAME_KIND,
// of the program itself MODULE_NAME_KIND, each part z-encoded
// (gitlab.haskell.org/ghc/ghc/-/wikis/commentary/compiler/symbol-names).
std::optional<std::string> ghc_name(std::string_view symbol);

}  // namespace luaspy
