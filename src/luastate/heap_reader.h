#pragma once
// Every object of one global_State: how large it is and what it refers to. LuaHeap::heap_reader() makes
// the one of its implementation.
//
// `memory` must not change meanwhile: a copy of one instant, or a core file. It may be incomplete or
// hostile: then less is visited, and visit_objects() says so. Only youngest(), visit_by_age(),
// object_at() and table_form() may be asked of a process that runs. Nothing here knows which objects
// can be reached; that is for the caller (heap/object_graph.h).

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/memory.h"
#include "luastate/heap_object.h"
#include "luastate/lua.h"

namespace luaspy {

class HeapReader {
 public:
  virtual ~HeapReader() = default;
  HeapReader(const HeapReader&) = delete;
  HeapReader& operator=(const HeapReader&) = delete;

  // Each object of the collector's lists, in no order. False if a list could not be followed to its
  // end, or has more than `most` objects.
  virtual bool visit_objects(std::uint64_t most, const std::function<void(const HeapObject&)>& visit) const = 0;
  // The objects of the list that most of them are in, the youngest first (lgc.c, luaC_newobj; lj_gc.c,
  // lj_mem_newgco). Not in it: strings of 5.1, 5.2 and LuaJIT, userdata of LuaJIT, and what has or had
  // a finalizer. Ends when `visit` returns false, and after `most` objects; false if it ended in neither
  // way.
  bool visit_by_age(std::uint64_t most, const std::function<bool(Address)>& visit) const;
  // Whether all objects of a type come into that list when they are made, if they do.
  virtual bool keeps_order(ObjectType type) const = 0;
  Address youngest() const;  // the first of that list; 0: not known
  // What is at `address`, if it has the head of an object that is not dead. `is_new`: of one that the
  // collector has not come to yet. Its `size` is that of the block that was asked for, without what is
  // allocated apart, such as a table's hash part. The memory may be that of a process that runs.
  virtual std::optional<HeapObject> object_at(Address address, bool is_new) const = 0;
  // Strong references only: those that keep an object alive. Their ends need not be objects.
  // An object without a size has none.
  virtual void visit_references(const HeapObject& object, const std::function<void(const Reference&)>& visit) const = 0;
  virtual void visit_roots(const std::function<void(const Root&)>& visit) const = 0;
  // The others: what a weak table refers to and does not keep alive.
  void visit_weak_references(const HeapObject& object, const std::function<void(const Reference&)>& visit) const;
  // What the VM's counter has beside the objects: the global_State, the table of strings, buffers.
  virtual std::uint64_t other_bytes() const = 0;

  // Does the table refer weakly to its keys, its values (`__mode`)?
  struct Weak {
    bool keys = false, values = false;
  };
  Weak weak(Address metatable) const;
  // Whether an entry of such a table is weak by its key, by its value.
  static Weak weak_entry(Weak table, const Value& key, const Value& value);
  TableForm table_form() const { return form_; }

 protected:
  HeapReader(const Memory& memory, const Lua& lua, Address G);

  // The string "__mode"; 0: not known, then no table is weak.
  virtual Address mode_name() const = 0;
  // Does the value of a weak key count only while the key does? Otherwise it always counts.
  virtual bool has_ephemerons() const = 0;

  void visit_table(Address table, const std::function<void(const Reference&)>& visit) const;
  // A reference to a value, if that is an object.
  void visit_value(const Value& value, Reference reference, const std::function<void(const Reference&)>& visit) const;
  // The values of `count` slots from `first` on.
  void visit_slots(Address first, std::uint64_t count, Reference reference,
                   const std::function<void(const Reference&)>& visit) const;
  // Follows a list from its first object on. `visit` gets each object's address and type byte.
  bool visit_list(Address first, std::uint64_t& most,
                  const std::function<void(Address object, std::uint8_t type, std::uint8_t marked)>& visit) const;

  // A size that an object has by its fields. 0 if it is more than all objects together: then the
  // fields are not set yet, or nonsense.
  std::uint64_t believable(std::uint64_t size) const { return size <= total_ ? size : 0; }

  const Memory& memory_;
  const Lua& lua_;
  Address G_;

 private:
  TableForm form_;
  std::uint64_t total_;  // what the VM's own counter says
  mutable std::uint64_t metatable_slots_left_;
  mutable std::unordered_map<Address, Weak> weak_;  // by metatable
};

}  // namespace luaspy
