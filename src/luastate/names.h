#pragma once
// What the functions of a walk are called. Runs after the stop, on the live memory: what it reads may have changed since,
// so everything is cached by address and checked against what the stop saw, and read again where it differs.

#include <string>
#include <unordered_map>

#include "frame.h"
#include "luastate/prototype.h"
#include "luastate/puc.h"
#include "luastate/tables.h"

namespace luaspy {

class Names {
 public:
  explicit Names(const Memory& memory) : memory_(memory) {}

  const Memory& memory() const { return memory_; }

  // The Lua function of `call`; nullptr if its Proto is gone, which the collector may do once the function has returned.
  // Valid until the next call of prototype().
  const Prototype* prototype(const Layout& layout, const LuaCall& call);

  // `call` as a frame. `caller` is the call outside of it in the same coroutine, nullptr if there is none or it is not
  // known. `pc` is the next instruction of a Lua call. A C function without a name gets an empty one.
  Frame frame(const Layout& layout, Address G, const LuaCall& call, const LuaCall* caller, Address pc);

 private:
  std::string called_as(const Layout& layout, const LuaCall& call, const LuaCall* caller);
  const std::string* loaded_name(const Layout& layout, Address G, Address entry);
  void read_loaded(const Layout& layout, Address G);

  struct Entry {
    std::uint64_t mark = 0;
    std::optional<Prototype> prototype;
    std::unordered_map<int, std::string> callees;  // by instruction: what it calls
  };
  Entry* entry(const Layout& layout, const LuaCall& call);

  const Memory& memory_;
  std::unordered_map<Address, Entry> prototypes_;              // by Proto
  std::unordered_map<Address, std::string> loaded_;            // C functions of package.loaded, by entry
  int reads_left_ = 16;       // package.loaded is read again for functions that are not in it, but not for ever
  int misses_ = 0;
};

// How Lua shows a chunk's name (lobject.c, luaO_chunkid), but files uncut: "@a/b.lua" is "a/b.lua", "=stdin" is "stdin",
// source text is [string "first line..."].
std::string chunk_name(const std::string& source);

}  // namespace luaspy
