#pragma once
// The names of the functions of a walk. Runs after the stop, on live memory, which may have changed
// since. So everything is cached by address, checked against what the stop saw, and read again if
// it differs.

#include <string>
#include <unordered_map>

#include "base/frame.h"
#include "luastate/prototype.h"
#include "luastate/value_path.h"
#include "luastate/walk.h"

namespace luaspy {

class Lua;

class Names {
 public:
  explicit Names(const Memory& memory) : memory_(memory) {}

  const Memory& memory() const { return memory_; }

  // Where the calls of a walk were found.
  struct Context {
    const Lua& lua;
    Address G = 0;
    const Memory& stopped;  // what the stop read; other memory cannot be read from it
  };

  // The Lua function of `call`; nullptr if its Proto no longer exists, since the collector may free
  // it once the function has returned. Valid until the next call of prototype().
  const Prototype* prototype(const Lua& lua, const LuaCall& call);

  // `call` as a frame. `caller` is the call outside of it in the same coroutine, nullptr if there
  // is none or it is not known. `pc` is the next instruction of a Lua call. A C function without a
  // name gets an empty name.
  //
  // LuaJIT has none of LuaCall.tail, hooked and finalizer. A name that the caller's expression does
  // not confirm is therefore left out (luajit/callee.h). LuaCall.fresh means there that the
  // function was called through a C frame (FRAME_C, FRAME_CP).
  Frame frame(const Context& context, const LuaCall& call, const LuaCall* caller, Address pc);

  // The name of a function (LuaCall.key) in package.loaded; nullptr if it is not there. Valid until
  // the next call.
  const std::string* loaded_name(const Context& context, Address key);

  // Reading package.loaded takes milliseconds, so it is not read while a thread is stopped: call
  // this before the stop.
  void read_loaded(const Lua& lua, Address G);
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
    std::unordered_map<Address, Verdict> verdicts;  // by callee: is it really called by that name?
  };
  struct Entry {
    std::uint64_t mark = 0;
    std::optional<Prototype> prototype;
    std::unordered_map<int, Called> callees;  // by instruction
    std::uint32_t identity = 0;               // Frame.prototype; 0: not computed yet
    std::string file;                         // chunk_name() of its source
  };
  Entry* entry(const Lua& lua, const LuaCall& call);
  std::string called_as(const Context& context, const LuaCall& call, const LuaCall* caller);
  bool is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller);
  void name_as_loaded(Frame& frame, const Context& context, Address key);
  const std::string* loaded_lua_name(const Context& context, const LuaCall& call);
  std::uint32_t identity_of(const Lua& lua, Entry& entry);
  void tell_children_apart(const Lua& lua, const Prototype& parent);

  const Memory& memory_;
  std::unordered_map<Address, Entry> prototypes_;  // by Proto
  // A function of package.loaded. If a module has more names for it than aliases explain, it is a
  // wrapper for other functions, which it finds in its upvalues (mpv does that). Then it has no
  // name of its own.
  struct Loaded {
    std::string name, module;
    int names = 0;  // number of its names in `module`
    bool is_shared = false;
    Address closure = 0;     // the first closure of it that was seen
    std::uint64_t mark = 0;  // Lua: mark of its Proto at that time
  };
  std::unordered_map<Address, Loaded> loaded_;  // by LuaCall.key, LuaCall.code
  // Lua functions by closure: different closures of one prototype may be different functions to
  // their callers.
  struct LoadedClosure {
    std::string name;
    Address code = 0;
    std::uint64_t mark = 0;
  };
  std::unordered_map<Address, LoadedClosure> loaded_closures_;
  std::unordered_map<Address, int> lua_misses_;  // by global_State
  int lua_reads_left_ = 256;
  bool stands_still_ = false;
  // Numbers the functions that begin on the same line of one parent and have the same code: the
  // second one gets 1.
  struct Twin {
    std::uint32_t identity = 0, number = 0;
  };
  std::unordered_map<Address, Twin> twins_;  // by Proto
  // package.loaded is read again for functions that are not in it, but not without end.
  int reads_left_ = 16;
  int misses_ = 0;
};

// A chunk's name as Lua shows it (lobject.c, luaO_chunkid), but with file names uncut: "@a/b.lua"
// is "a/b.lua", "=stdin" is "stdin", source text is [string "first line..."].
std::string chunk_name(const std::string& source);

}  // namespace luaspy
