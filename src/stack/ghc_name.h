#pragma once
// Demangles symbol names made by the Glasgow Haskell Compiler: "base_GHCziBase_map_info" is
// base:GHC.Base.map.

#include <optional>
#include <string>
#include <string_view>

namespace luaspy {

// nullopt: not such a name, or nothing to decode. A symbol is PACKAGE_MODULE_NAME_KIND, or
// MODULE_NAME_KIND in the program itself; each part is z-encoded
// (gitlab.haskell.org/ghc/ghc/-/wikis/commentary/compiler/symbol-names).
std::optional<std::string> ghc_name(std::string_view symbol);

}  // namespace luaspy
