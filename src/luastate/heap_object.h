#pragma once
// An object of a heap, and what refers to it.

#include <cstdint>
#include <string_view>

#include "base/memory.h"
#include "luastate/value.h"

namespace luaspy {

enum class ObjectType : std::uint8_t {
  string,
  table,
  lua_function,  // a closure
  c_function,    // a closure; C functions without upvalues are no objects from 5.2 on
  userdata,
  thread,
  prototype,
  upvalue,  // 5.3: no object of the collector, but allocated in the same way
  cdata,    // LuaJIT
  trace,    // LuaJIT
};
inline constexpr std::size_t object_types = 10;
std::string_view name(ObjectType type);  // "string", "Lua function"

struct HeapObject {
  Address address = 0;
  ObjectType type = ObjectType::string;
  bool is_dead = false;    // the current sweep will free it
  std::uint64_t size = 0;  // bytes that the VM's own counter has for it
};

// What a reference is to the program.
enum class Link : std::uint8_t {
  entry,        // a table's value: `key`
  key,          // a table's key is an object
  metatable,    //
  environment,  // of a function or userdata (5.1, LuaJIT), of a thread (5.1, LuaJIT)
  upvalue,      // of a closure: `index`, from 0 on
  value,        // of an upvalue
  prototype,    // of a Lua function
  constant,     // of a prototype: also names for debug information
  nested,       // of a prototype: a function defined in it, `index` from 0 on
  user_value,   // of a userdata: `index`, from 0 on
  slot,         // of a thread's stack: `index`, from 0 on
  trace,        // LuaJIT: of a prototype or a trace
};

struct Reference {
  // Mostly the visited object. An ephemeron's value is referred to by its key (lgc.c,
  // traverseephemeron).
  Address from = 0;
  Address to = 0;
  Link link = Link::entry;
  std::uint32_t index = 0;
  Value key{};
};

// How many objects fit into so many bytes of memory: the smallest takes 16 (malloc(3)).
constexpr std::uint64_t most_objects(std::uint64_t bytes) { return bytes / 16; }

// Where every path begins.
struct Root {
  enum class Kind : std::uint8_t {
    registry,
    main_thread,
    metatable,  // of a basic type: `type`
    finalizer,  // waits for its __gc
    fixed,      // Lua's own strings
    trace,      // LuaJIT: what its machine code uses
  };
  Address to = 0;
  Kind kind = Kind::registry;
  Value::Type type = Value::Type::nil;
};

}  // namespace luaspy
