#include "luastate/luas.h"

#include <algorithm>

#include "luastate/jit_reader.h"
#include "luastate/luajit/luajit_jit.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/luajit_opcodes.h"
#include "luastate/luajit/luajit_stack_walker.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/puc/puc_opcodes.h"
#include "luastate/puc/puc_stack_walker.h"

namespace luaspy {

namespace {

// Hardly any program has values of another size: their layouts are tried when no other layout fits.
bool is_usual(const Lua* layout) {
  constexpr std::size_t usual = 16;
  return layout->slot_size() == usual;
}

}  // namespace

std::vector<const Lua*> layouts_for(const std::string& version) {
  std::vector<const Lua*> layouts;
  if (version.starts_with("LuaJIT")) {
    layouts.assign(luajit_luas().begin(), luajit_luas().end());
    return layouts;
  }
  const std::string_view series = std::string_view(version).substr(0, 3);
  const int patch = version.size() == 5 ? version[4] - '0' : -1;
  for (const PucLua* const lua : puc_luas()) {
    if (lua->layout().series == series || series == "5.?") layouts.push_back(lua);
  }
  // Newest first, but the layout named by the version before all others. A release newer than every
  // layout gets the newest layout.
  std::ranges::reverse(layouts);
  std::stable_partition(layouts.begin(), layouts.end(), [&](const Lua* lua) {
    const Layout& layout = *puc_layout(*lua);
    return patch >= layout.first_patch && patch <= layout.last_patch;
  });
  std::stable_partition(layouts.begin(), layouts.end(), is_usual);
  return layouts;
}

std::vector<const Lua*> all_layouts() {
  std::vector<const Lua*> layouts(puc_luas().rbegin(), puc_luas().rend());
  std::stable_partition(layouts.begin(), layouts.end(), is_usual);
  layouts.insert(layouts.end(), luajit_luas().begin(), luajit_luas().end());
  return layouts;
}

std::array<std::unique_ptr<StackWalker>, lua_kinds> make_stack_walkers(const Memory& live, const Memory& objects,
                                                                       const Machine& machine) {
  std::array<std::unique_ptr<StackWalker>, lua_kinds> readers;
  readers[static_cast<std::size_t>(LuaKind::puc)] = std::make_unique<PucStackWalker>(live, machine);
  readers[static_cast<std::size_t>(LuaKind::luajit)] = std::make_unique<LuajitStackWalker>(objects, machine);
  return readers;
}

std::unique_ptr<JitReader> make_jit_reader(const Lua& lua, const Memory& memory, Address G) {
  const auto* const luajit = dynamic_cast<const LuajitLua*>(&lua);
  return luajit != nullptr ? std::make_unique<LuajitJit>(memory, *luajit, G) : nullptr;
}

const Encoding& encoding_of(Bytecode bytecode) {
  if (bytecode == Bytecode::luajit) return opcode_tables::luajit_gc64_encoding;
  if (bytecode == Bytecode::luajit_gc32) return opcode_tables::luajit_gc32_encoding;
  if (bytecode == Bytecode::luajit20) return opcode_tables::luajit20_encoding;
  return opcode_tables::puc_encodings[static_cast<std::size_t>(bytecode)];
}

}  // namespace luaspy
