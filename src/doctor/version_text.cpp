#include "doctor/version_text.h"

#include <fmt/format.h>

#include "base/version.h"
#include "luastate/luas.h"
#include "luastate/puc/layouts.h"

namespace luaspy {

std::string version_text() {
  std::string text = fmt::format("luaspy {}\n{}reads Lua", version, build);
  constexpr std::size_t width = 80;
  std::size_t line = text.rfind('\n');
  constexpr std::uint8_t usual = 16;  // the others are the same releases, with long double
  for (const Layout& row : layouts()) {
    if (row.value_size != usual) continue;
    if (&row != &layouts().front()) text += ',';
    if (text.size() - line > width) line = text.size(), text += "\n ";
    text += fmt::format(" {}", row.name);
  }
  text += "\n  each also with numbers of other types\n ";
  for (const Lua* const luajit : rows_for("LuaJIT")) text += fmt::format(" {};", luajit->name());
  text.pop_back();
  return text;
}

}  // namespace luaspy
