#pragma once
// What is reported of a Lua, as values: where it is, the state of its coroutines, the variables of their calls.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class Lua;

// An ELF image that holds a Lua core, or seems to. An image with several is listed once for each
// version.
struct LuaImage {
  std::string path;            // printable
  Address start = 0, end = 0;  // of the image, in the target
  // "5.4.4"; "5.4" if only the series is known; "5.?" if not even that; "LuaJIT 2.1.0-beta3"; or "Luau".
  std::string version;
  std::string ident;  // the string that showed it
  std::string name() const { return version.starts_with("5.") ? "Lua " + version : version; }
  // True: lua_ident itself was found, or something that only a core has. False: only a mention of the
  // series.
  bool certain = false;
  // The layout named by the version first, then the others of its series. LuaJIT: one for each size of
  // its references. Empty: luaspy does not read it.
  std::vector<const Lua*> layouts;
  int copies = 1;  // how many of this version are linked into it
};

// lbaselib.c, lcorolib.c: auxstatus; lib_base.c: coroutine.status. Their "suspended" and "dead" are
// divided further here.
enum class CoroutineStatus : std::uint8_t {
  running,  // the innermost one on a thread
  normal,   // has resumed another coroutine, on a thread
  // "normal" for coroutine.status, but no thread is in it: it waits on a C stack of its own, as
  // Tarantool's fibers do.
  elsewhere,
  suspended,
  not_started,  // "suspended", at its first instruction
  dead,         // its function has returned, or the coroutine was closed
  failed,       // "dead" by an error, still at the place of the error
};
inline constexpr std::size_t coroutine_statuses = 7;
std::string_view name(CoroutineStatus status);

struct Variable {
  enum class Kind : std::uint8_t {
    parameter,
    local,
    vararg,  // (vararg) 1, …
    // (C temporary) 1, …, as debug.getlocal of 5.4 names them: everything on a C function's part of the stack. The
    // first are its arguments, unless it has moved them, as pcall does; Lua does not know how many it was given.
    temporary,
    argument,  // (C argument) 1, …: what its caller's instruction has passed to it
    upvalue,
  };
  Kind kind = Kind::local;
  std::string name;
  std::string value;  // printable: UTF-8 without control characters, bounded
};

constexpr std::string_view name(Variable::Kind kind) {
  constexpr std::string_view names[] = {"parameter", "local", "vararg", "temporary", "argument", "upvalue"};
  return names[static_cast<std::size_t>(kind)];
}

struct CallVariables {
  std::vector<Variable> variables;
  // Why parameters, locals and varargs are missing although the call may have them; empty if
  // nothing prevents showing them.
  std::string_view not_known;
};

}  // namespace luaspy
