#pragma once
// What the functions of a walk are called. Runs after the stop, on the live memory: what it reads
// may have changed since, so everything is cached by address and checked against what the stop saw,
// and read again where it differs.

#include <string>
#include <unordered_map>

#include "base/frame.h"
#include "luastate/dialect.h"
#include "luastate/luajit/callee.h"
#include "luastate/prototype.h"
#include "luastate/puc/walk_puc.h"

namespace luaspy {

class Names {
 public:
  explicit Names(const Memory& memory) : memory_(memory) {}

  const Memory& memory() const { return memory_; }

  // Where the calls of a walk were found.
  struct Context {
    const Dialect& dialect;
    Address G = 0;
    const Memory& stopped;  // the stop: what it did not read cannot be asked
  };

  // The Lua function of `call`; nullptr if its Proto is gone, which the collector may do once the
  // function has returned. Valid until the next call of prototype().
  const Prototype* prototype(const Dialect& dialect, const LuaCall& call);

  // `call` as a frame. `caller` is the call outside of it in the same coroutine, nullptr if there
  // is none or it is not known. `pc` is the next instruction of a Lua call. A C function without a
  // name gets an empty one.
  //
  // LuaJIT has neither LuaCall.tail nor hooked nor finalizer: a name that its caller's expression
  // does not bear out is left out (luajit_callee.h). LuaCall.fresh says there that the function was
  // called through a C frame (FRAME_C, FRAME_CP).
  Frame frame(const Context& context, const LuaCall& call, const LuaCall* caller, Address pc);

  // The name by which package.loaded knows a function (LuaCall.key); nullptr if it does not. Valid
  // until the next call.
  const std::string* loaded_name(const Context& context, Address key);

  // Reading package.loaded takes milliseconds: while a thread stands still what is known has to do.
  // Read it before.
  void read_loaded(const Dialect& dialect, Address G);
  void stand_still(bool still) { stands_still_ = still; }

 private:
  // What an instruction calls.
  struct Called {
    struct Verdict {
      int looks = 0;
      bool settled = false, is_true = true;
    };
    std::string name;
    ValuePath path;
    std::unordered_map<Address, Verdict> verdicts;  // by callee: is it called by that name?
  };
  struct Entry {
    std::uint64_t mark = 0;
    std::optional<Prototype> prototype;
    std::unordered_map<int, Called> callees;  // by instruction
    std::uint32_t identity = 0;               // Frame.prototype; 0: not asked for yet
    std::string file;                         // chunk_name() of its source
  };
  Entry* entry(const Dialect& dialect, const LuaCall& call);
  std::string called_as(const Context& context, const LuaCall& call, const LuaCall* caller);
  bool is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller);
  void name_as_loaded(Frame& frame, const Context& context, Address key);
  const std::string* loaded_lua_name(const Context& context, const LuaCall& call);
  std::uint32_t identity_of(const Dialect& dialect, Entry& entry);
  void tell_children_apart(const Dialect& dialect, const Prototype& parent);

  const Memory& memory_;
  std::unordered_map<Address, Entry> prototypes_;  // by Proto
  // A function of package.loaded. Where a module has more names for it than aliases explain, it
  // stands for other functions that it finds in its upvalues (mpv does that), and has no name of
  // its own.
  struct Loaded {
    std::string name, module;
    int names = 0;  // that `module` has for it
    bool is_shared = false;
    Address closure = 0;     // the first one of it that was seen
    std::uint64_t mark = 0;  // Lua: of its Proto then
  };
  std::unordered_map<Address, Loaded> loaded_;  // by LuaCall.key, LuaCall.code
  // Lua functions by closure: those of one prototype may be different functions to their callers.
  struct LoadedClosure {
    std::string name;
    Address code = 0;
    std::uint64_t mark = 0;
  };
  std::unordered_map<Address, LoadedClosure> loaded_closures_;
  std::unordered_map<Address, int> lua_misses_;  // by global_State
  int lua_reads_left_ = 256;
  bool stands_still_ = false;
  // Of functions that begin on the same line of one parent and have the same code, the how many-th
  // one it is: from 1 on for the second.
  struct Twin {
    std::uint32_t identity = 0, number = 0;
  };
  std::unordered_map<Address, Twin> twins_;  // by Proto
  int reads_left_ = 16;  // package.loaded is read again for functions that are not in it, but not for ever
  int misses_ = 0;
};

// How Lua shows a chunk's name (lobject.c, luaO_chunkid), but files uncut: "@a/b.lua" is "a/b.lua",
// "=stdin" is "stdin", source text is [string "first line..."].
std::string chunk_name(const std::string& source);

}  // namespace luaspy
