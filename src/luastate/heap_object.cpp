#include "luastate/heap_object.h"

#include <iterator>

namespace luaspy {

std::string_view name(ObjectType type) {
  constexpr std::string_view names[] = {"string",    "table",     "Lua function", "C function", "userdata",
                                        "coroutine", "prototype", "upvalue",      "cdata",      "trace"};
  static_assert(std::size(names) == object_types);
  return names[static_cast<std::size_t>(type)];
}

}  // namespace luaspy
