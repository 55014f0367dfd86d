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
  std::vector<const Lua*> rows = rows_for("5.?");
  constexpr std::size_t usual = 16;  // the others are the same releases, with long double
  std::erase_if(rows, [](const Lua* row) { return row->slot_size() != usual; });
  std::ranges::reverse(rows);  // the oldest first
  for (const Lua* const row : rows) {
    if (row != rows.front()) text += ',';
    if (text.size() - line > width) line = text.size(), text += "\n ";
    text += row->name().substr(std::string_view("Lua").size());
  }
  text += "\n  each also with numbers of other types\n ";
  for (const Lua* const luajit : rows_for("LuaJIT")) text += fmt::format(" {};", luajit->name());
  text.pop_back();
  return text;
}

}  // namespace luaspy
