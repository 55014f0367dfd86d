#include "doctor/version_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "luastate/luas.h"

namespace luaspy {

std::string version_text() {
  std::string text = fmt::format("luaspy {}\n{}reads Lua", version, build);
  constexpr std::size_t width = 80;
  std::size_t line = text.rfind('\n');
  std::vector<const Lua*> layouts = layouts_for("5.?");
  constexpr std::size_t usual = 16;  // the others are the same releases, with long double
  std::erase_if(layouts, [](const Lua* layout) { return layout->slot_size() != usual; });
  std::ranges::reverse(layouts);  // the oldest first
  for (const Lua* const layout : layouts) {
    if (layout != layouts.front()) text += ',';
    if (text.size() - line > width) line = text.size(), text += "\n ";
    text += layout->name().substr(std::string_view("Lua").size());
  }
  text += "\n  each also with numbers of other types\n ";
  for (const Lua* const luajit : layouts_for("LuaJIT")) text += fmt::format(" {};", luajit->name());
  text.pop_back();
  return text;
}

}  // namespace luaspy
