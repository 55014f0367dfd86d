#pragma once
// --label plugin: which plugin of the program a Lua file belongs to, by where it lies.

#include <string>
#include <string_view>

namespace luaspy {

// `file`: Frame::file of a Lua function. "": it belongs to none.
// Neovim: the folder below pack/*/start, pack/*/opt (:help packages), or of a plugin manager: lazy, plugged, bundle;
// "(neovim)" for what Neovim brings along. Kong and APISIX: kong/plugins/NAME, apisix/plugins/NAME.
std::string plugin_of(std::string_view file);

}  // namespace luaspy
