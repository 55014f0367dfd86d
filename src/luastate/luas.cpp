#include "luastate/luas.h"

#include <algorithm>

#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/luajit_opcodes.h"
#include "luastate/luajit/luajit_stack_walker.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/puc/puc_opcodes.h"
#include "luastate/puc/puc_stack_walker.h"

namespace luaspy {

namespace {

// Hardly any program has values of another size: their rows are tried when no other row fits.
bool is_usual(const Lua* row) {
  constexpr std::size_t usual = 16;
  return row->slot_size() == usual;
}

}  // namespace

std::vector<const Lua*> rows_for(const std::string& version) {
  std::vector<const Lua*> rows;
  if (version.starts_with("LuaJIT")) {
    rows.assign(luajit_luas().begin(), luajit_luas().end());
    return rows;
  }
  const std::string_view series = std::string_view(version).substr(0, 3);
  const int patch = version.size() == 5 ? version[4] - '0' : -1;
  for (const PucLua* const row : puc_luas()) {
    if (row->layout().series == series || series == "5.?") rows.push_back(row);
  }
  // Newest first, but the row named by the version before all others. A release newer than every
  // row gets the newest row.
  std::ranges::reverse(rows);
  std::stable_partition(rows.begin(), rows.end(), [&](const Lua* row) {
    const Layout& layout = *puc_layout(*row);
    return patch >= layout.first_patch && patch <= layout.last_patch;
  });
  std::stable_partition(rows.begin(), rows.end(), is_usual);
  return rows;
}

std::vector<const Lua*> all_rows() {
  std::vector<const Lua*> rows(puc_luas().rbegin(), puc_luas().rend());
  std::stable_partition(rows.begin(), rows.end(), is_usual);
  rows.insert(rows.end(), luajit_luas().begin(), luajit_luas().end());
  return rows;
}

std::array<std::unique_ptr<StackWalker>, lua_kinds> make_stack_walkers(const Memory& live, const Memory& objects,
                                                                       const Machine& machine) {
  std::array<std::unique_ptr<StackWalker>, lua_kinds> readers;
  readers[static_cast<std::size_t>(LuaKind::puc)] = std::make_unique<PucStackWalker>(live, machine);
  readers[static_cast<std::size_t>(LuaKind::luajit)] = std::make_unique<LuajitStackWalker>(objects, machine);
  return readers;
}

const Encoding& encoding_of(Bytecode bytecode) {
  if (bytecode == Bytecode::luajit) return opcode_tables::luajit_gc64_encoding;
  if (bytecode == Bytecode::luajit_gc32) return opcode_tables::luajit_gc32_encoding;
  if (bytecode == Bytecode::luajit20) return opcode_tables::luajit20_encoding;
  return opcode_tables::puc_encodings[static_cast<std::size_t>(bytecode)];
}

}  // namespace luaspy
