#include "heap/heap_contents.h"

#include <algorithm>

#include "luastate/heap_reader.h"

namespace luaspy {

void use_contents(const Memory& memory, const Lua& lua, Address G, const HeapObject& object, CoroutineLook& look) {
  if (object.type == ObjectType::prototype) (void)lua.prototype(memory, object.address);
  if (object.type == ObjectType::thread)
    (void)look_at_coroutine(memory, {lua, G, object.address, Active::innermost}, {}, look);
  // The size of a table, a thread or a prototype has what it refers to in it.
  constexpr std::uint64_t own = 256;
  const bool is_apart = object.type == ObjectType::table || object.type == ObjectType::thread ||
                        object.type == ObjectType::prototype || object.type == ObjectType::trace;
  memory.prefetch(object.address, is_apart ? std::min(object.size, own) : object.size);
}

bool use_heap(const Memory& memory, const Lua& lua, Address G) {
  // In memory that changes, a list may lead round in a circle.
  constexpr std::uint64_t least_size = 16, more = 10'000;
  const std::uint64_t most = static_cast<std::uint64_t>(std::max<std::int64_t>(lua.collector(memory, G).bytes, 0)) /
                                 least_size +
                             more;
  constexpr std::size_t around = 8 << 10;  // bytes: the global_State, and the main thread before it
  memory.prefetch(G - around, 2 * around);
  const std::unique_ptr<HeapReader> reader = lua.heap_reader(memory, G);
  if (reader == nullptr) return false;
  (void)reader->other_bytes();
  reader->visit_roots([](const Root&) {});
  CoroutineLook look;
  return reader->visit_objects(most, [&](const HeapObject& object) {
    reader->visit_references(object, [](const Reference&) {});
    use_contents(memory, lua, G, object, look);
  });
}

}  // namespace luaspy
