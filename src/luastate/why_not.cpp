#include "luastate/why_not.h"

#include <algorithm>

#include "luastate/locate.h"

namespace luaspy {
namespace {

// lj_dispatch.h, GG_State: how far a main thread lies below its global_State, in the known releases
// and somewhat beyond.
constexpr Address nearest_main = 64, farthest_main = 160;

const char* luajit_misfit(const Memory& memory, const LuajitLayout& row, Address L) {
  if (memory.get<std::uint8_t>(L + row.L_gct) != luajit::gct_thread) return "it does not have the type of a thread";
  const Address G = read_ref(memory, row, L + row.L_glref).value_or(0);
  if (!plausible_pointer(G)) return "its glref is not an address";
  LuajitLayout found = row;
  if (find_globals(memory, L, found)) return nullptr;
  for (Address below = nearest_main; below <= farthest_main; below += 8) {
    if (is_thread_of(memory, row, G - below, G))
      return "the fields of its global_State are not where any known LuaJIT has them";
  }
  return "there is no main thread right below its global_State";
}

}  // namespace

void RowTrial::add(Address L, const char* why_not) {
  if (why_not == nullptr) {
    if (fitted++ == 0) first_fit = L;
    return;
  }
  Failures& failures = failed[why_not];
  if (failures.count++ == 0) failures.first = L;
}

const char* misfit(const Memory& memory, const Dialect& lua, Address L) {
  return lua.puc != nullptr ? misfit(memory, *lua.puc, L) : luajit_misfit(memory, *lua.luajit, L);
}

void try_word(const Memory& memory, Address word, std::span<RowTrial> trials) {
  for (RowTrial& trial : trials) {
    const bool puc = trial.lua.puc != nullptr;
    const Offset type = puc ? trial.lua.puc->L_tt : trial.lua.luajit->L_gct;
    const std::uint8_t tag = puc ? trial.lua.puc->tag_thread : luajit::gct_thread;
    if (memory.get<std::uint8_t>(word + type) == tag) trial.add(word, misfit(memory, trial.lua, word));
  }
}

std::uint64_t try_memory(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                         std::span<RowTrial> trials) {
  constexpr std::size_t chunk = 1 << 20;
  constexpr Address most_added = 64;  // bytes that programs with a modified Lua have added to lua_State
  std::vector<std::byte> bytes(chunk);
  std::uint64_t searched = 0;
  // lstate.c, lua_newstate: l_G of a main thread points right behind it; in 5.5 to the object that
  // it is inside of. LuaJIT: as in luajit_misfit().
  const auto looks_main = [&](const RowTrial& trial, Address L, Address G) {
    if (trial.lua.luajit != nullptr) return G - L >= nearest_main && G - L <= farthest_main;
    const Layout& row = *trial.lua.puc;
    return row.mainthread_embedded ? G == L - row.G_mainthread : G - (L + row.L_size) <= most_added;
  };
  for (const Mapping& mapping : space.mappings()) {
    if (!mapping.writable || !mapping.readable || mapping.shared) continue;
    for (Address at = mapping.start; at < mapping.end && searched < most; at += chunk) {
      const auto part = std::span(bytes).first(std::min<Address>(chunk, mapping.end - at));
      searched += part.size();
      if (!memory.read(at, part)) continue;
      for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
        for (RowTrial& trial : trials) {
          const bool is_short = trial.lua.luajit != nullptr && !trial.lua.luajit->gc64;
          const Address L = at + i - (trial.lua.puc != nullptr ? trial.lua.puc->L_G : trial.lua.luajit->L_glref);
          const Address G = is_short ? load<std::uint32_t>(part, i) : load<Address>(part, i);
          if (!looks_main(trial, L, G)) continue;
          const char* const why_not = misfit(memory, trial.lua, L);
          constexpr std::string_view no_thread = "it does not have the type of a thread";
          if (why_not == nullptr || why_not != no_thread) trial.add(L, why_not);
        }
      }
    }
  }
  return searched;
}

}  // namespace luaspy
