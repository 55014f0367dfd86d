#pragma once
// One value of a target: TValue (lobject.h; lj_obj.h), decoded.

#include <bit>
#include <cstdint>

namespace luaspy {

struct Value {
  enum class Type : std::uint8_t {
    nil,  // also an empty slot of a table
    boolean,
    integer,  // 5.3 and later
    number,
    string,
    table,
    function,        // a closure, Lua or C
    light_function,  // 5.2 and later: a C function without a closure
    light_userdata,
    userdata,
    thread,
    cdata,  // LuaJIT
    // LuaJIT: the control variable of a loop over pairs() while the loop runs (lj_bc.h,
    // LJ_KEYINDEX).
    key_index,
    other,  // never visible to a program, or not a value at all
  };
  Type type = Type::nil;
  std::uint64_t word = 0;  // an object's address; a number's bits; a light value itself

  double number() const { return std::bit_cast<double>(word); }
  std::int64_t integer() const { return static_cast<std::int64_t>(word); }
  bool is_object(Type which) const { return type == which && word != 0; }
};

}  // namespace luaspy
