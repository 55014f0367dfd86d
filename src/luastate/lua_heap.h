#pragma once
// A heap: its collector, the list of its objects, and the memory that they are in.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/address_range.h"
#include "base/memory.h"
#include "base/resident_memory.h"
#include "luastate/allocator.h"
#include "luastate/collector_state.h"
#include "luastate/heap_object.h"

namespace luaspy {

class HeapReader;

class LuaHeap {
 public:
  // ---- The collector
  virtual CollectorState collector(const Memory& memory, Address G) const = 0;
  // The coroutine in which LuaJIT runs finalizers (global_State.vmthref, from 2025-11 on:
  // 5c647754); 0: none.
  virtual Address finalizer_thread(const Memory&, Address) const { return 0; }
  virtual Address first_object(const Memory& memory, Address G) const = 0;  // 0: none, or unreadable
  // False if there is no object that could be in a collector's list.
  virtual bool read_head(const Memory& memory, Address object, ObjectHead& head) const = 0;
  // Every object of `G` (heap_reader.h). `memory` must outlive it. nullptr: its lists are not known.
  virtual std::unique_ptr<HeapReader> heap_reader(const Memory& memory, Address G) const = 0;

  // ---- Allocations
  // The function with which it allocates, moves and frees everything (lua.h, lua_Alloc); 0: not
  // known.
  virtual Address allocation_function(const Memory& memory, Address G) const = 0;
  // The fields that count the bytes in use, next to each other: one read has them as they were at
  // one instant. At most largest_counter bytes; empty: not known.
  virtual AddressRange heap_counter(Address G) const = 0;
  // The bytes in use, as CollectorState.bytes.
  virtual std::int64_t heap_bytes(std::span<const std::byte> counter) const = 0;
  static constexpr std::size_t largest_counter = 16;
  // What a new block is for, by the `osize` that lua_Alloc gets with it. nullopt: a part of an
  // object, such as a table's array, or this Lua does not say it.
  virtual std::optional<ObjectType> type_of_new(std::uint64_t) const { return std::nullopt; }

  // ---- Its memory
  // What its own allocator has, which serves this one global_State. nullopt: the program has given
  // it another one, such as malloc; PUC's luaL_newstate always does. `space` bounds what is walked.
  virtual std::optional<AllocatorMemory> allocator(const Memory&, const AddressSpace&, Address) const {
    return std::nullopt;
  }
  // What allocators and JIT compilers of this Lua have mapped alone, in the whole process. `taken`:
  // memory that is known to be something else, ascending and disjoint.
  virtual SharedLuaMemory shared_memory(const Memory&, const ResidentMemory&, std::span<const AddressRange>) const {
    return {};
  }

 protected:
  ~LuaHeap() = default;
};

}  // namespace luaspy
