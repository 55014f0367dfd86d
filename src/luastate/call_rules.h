#pragma once
// Recognises the internal functions of a Lua without their symbols, by who calls whom. A host that can load C modules
// exports Lua's API; what lua_rawget calls is luaH_get, whatever a compiler made of the two. This holds where functions
// of different source files are not inlined into each other: after optimisation of the whole program (LTO) it does not,
// which some callers show. Then nothing is recognised. Pure.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/memory.h"

namespace luaspy {

// Functions of a VM image.
struct CallGraph {
  // By the start of a function: the starts of functions that it calls or jumps to, each once; itself
  // too, if it calls itself.
  std::map<Address, std::vector<Address>> calls;
  // By name: the exported API, luaV_execute, luaC_step.
  std::map<std::string, Address, std::less<>> known;
};

// `name` is the only function that all `callers` call and that has no name yet.
struct CallRule {
  std::string_view name;
  std::array<std::string_view, 3> callers;
  // What the source says in addition.
  enum class Also : std::uint8_t {
    nothing,
    only_they,  // nothing else calls it
    they_only,  // the first of them calls nothing else
    two,        // at most two functions call it
  } also = Also::nothing;
  std::string_view calls = {};   // it calls this
  std::string_view beside = {};  // the first caller calls this, too
};

// Names by the start of a function. Rules are tried until none finds anything new. `never_inlined`: if one of these is
// not recognised, or calls itself, functions of different files are inlined into each other, and there are no names.
std::unordered_map<Address, std::string_view> recognise_by_calls(const CallGraph& graph,
                                                                 std::span<const CallRule> rules,
                                                                 std::span<const std::string_view> never_inlined);

}  // namespace luaspy
