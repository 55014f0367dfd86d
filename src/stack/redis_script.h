#pragma once
// Which script or function a Lua of Redis or Valkey runs: --label request. From Redis 7.0 on, the server keeps what it
// runs in the registry as "__RUN_CTX__", a light userdata (script_lua.c, luaCallFunction): a scriptRunCtx, which has
// the name of a function that a library has registered, or the SHA-1 of a script, and says when that began (script.h;
// functions.c, fcallCommandGeneric; eval.c, evalGenericCommand). In Valkey from 9.0 on it is a luaFuncCallCtx
// (modules/lua/script_lua.c), which points to the scriptRunCtx. Before 7.0 there is no such key, but each script is the
// value of a global (luastate/host_scripts.h): it is known by its function, which is the outermost one.

#include <string>
#include <unordered_map>
#include <vector>

#include "luastate/field_path.h"
#include "luastate/names.h"
#include "stack/host_request.h"
#include "stack/one_stack.h"

namespace luaspy {

class RedisScripts {
 public:
  RedisScripts() : paths_(std::vector<std::string>{"__RUN_CTX__"}) {}

  // In the stop: touches what value() needs. Only what learn() has made known is looked for.
  void touch(const Memory& memory, const Located& located) const;
  // After it: the name, or 40 digits; "(unknown)" where it cannot be read; "" if this is no Lua of Redis, or one that
  // runs nothing that was asked for. `stopped`: what the stop has read. `live`: the memory as it is now.
  // `names`: the functions of the stack have been named.
  HostRequest value(const Joined& joined, Names& names, const Memory& stopped, const Memory& live);

  bool has_learned() const { return has_learned_; }
  // No stop may be in touch() meanwhile.
  void learn();
  // The process has become another program.
  void forget() { *this = {}; }

 private:
  // Of what runs; nullopt: it is not known; nil: nothing runs.
  std::optional<Value> context_of(const Memory& memory, Address G) const;
  bool look_up(const ActiveState& state, const Memory& live);

  FieldPaths paths_;
  std::unordered_map<Address, FieldPaths::Lesson> lessons_;  // by global_State: what learn() will add
  std::unordered_map<Address, std::size_t> looks_;           // by global_State: looks that have not found the key
  bool has_learned_ = false;
};

}  // namespace luaspy
