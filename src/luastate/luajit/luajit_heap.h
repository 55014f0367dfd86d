#pragma once
// The objects of LuaJIT (lj_gc.c, gc_freefunc; propagatemark).
//
//   gc.root ──▶ object ──▶ … ──▶ main thread ──▶ userdata ──▶ … ──▶ 0
//   gc.mmudata ──▶ object ──▶ … a ring of what waits for its finalizer
//   thread ──openupval──▶ open upvalue ──▶ … ──▶ 0
//   table of strings: an anchor ──▶ string ──▶ … ──▶ 0 for each hash & mask
//
// luajit_heap_sizes.cpp knows how large they are.

#include <vector>

#include "luastate/heap_reader.h"
#include "luastate/luajit/luajit_heap_fields.h"
#include "luastate/luajit/luajit_lua.h"

namespace luaspy {

class LuajitHeap : public HeapReader {
 public:
  // `memory` and `lua` must outlive it. `fields`: as find_heap_fields() found them in `G`.
  LuajitHeap(const Memory& memory, const LuajitLua& lua, Address G, const LuajitHeapFields& fields);

  bool visit_objects(std::uint64_t most, const std::function<void(const HeapObject&)>& visit) const override;
  bool keeps_order(ObjectType type) const override;
  std::optional<HeapObject> object_at(Address address, bool is_new) const override;
  void visit_references(const HeapObject& object, const std::function<void(const Reference&)>& visit) const override;
  void visit_roots(const std::function<void(const Root&)>& visit) const override;
  // Does not have what only the parser, a trace that is being assembled, or a profiler uses.
  std::uint64_t other_bytes() const override;

 protected:
  Address mode_name() const override;
  bool has_ephemerons() const override { return false; }

 private:
  using VisitReference = std::function<void(const Reference&)>;
  using VisitString = std::function<void(Address string, std::uint8_t marked, std::uint32_t length)>;
  using VisitInList = std::function<void(Address object, std::uint8_t gct, std::uint8_t marked)>;

  template <typename T>
  T field(Address object, std::size_t offset) const {
    return memory_.get<T>(object + offset).value_or(T{});
  }
  Address ref(Address object, std::size_t offset) const {
    return read_ref(memory_, layout_, object + offset).value_or(0);
  }
  std::optional<ObjectType> type_of(Address object, std::uint8_t gct) const;
  bool is_dead(std::uint8_t marked) const;
  bool visit_strings(std::uint64_t& most, const VisitString& visit) const;
  bool visit_waiting(std::uint64_t& most, const VisitInList& visit) const;

  std::uint64_t size_of(Address object, ObjectType type) const;
  std::uint64_t string_size(std::uint32_t length) const;
  std::uint64_t own_table_size(Address table) const;
  std::uint64_t table_size(Address table) const;
  std::uint64_t userdata_size(Address userdata) const;
  std::uint64_t cdata_size(Address cdata) const;
  std::uint64_t type_size(std::uint32_t id) const;
  std::uint64_t thread_size(Address L) const;
  std::uint64_t trace_size(Address trace) const;
  std::uint64_t snapshot_size() const;
  std::uint64_t ctype_bytes() const;
  std::uint64_t jit_bytes() const;
  std::uint64_t constant_array_bytes() const;
  std::uint64_t tmpbuf_bytes() const;

  void visit_function(const HeapObject& function, const VisitReference& visit) const;
  void visit_userdata(Address userdata, const VisitReference& visit) const;
  void visit_prototype(Address proto, const VisitReference& visit) const;
  void visit_trace(Address trace, const VisitReference& visit) const;
  void visit_thread(Address L, const VisitReference& visit) const;
  bool is_running(Address L) const;
  Address stack_end(Address L, Address base, const VisitReference& visit) const;
  struct TraceTable {
    Address references = 0;
    std::uint32_t size = 0;
  };
  TraceTable trace_table() const;
  Address trace_at(std::uint32_t number) const;

  const LuajitLua& luajit_;
  const LuajitLayout& layout_;
  LuajitHeapFields fields_;
  Address gc_root_ = 0;  // of the GCState's field `root`; those behind it have the same order everywhere
  std::uint8_t dead_white_ = 0;
  mutable std::vector<std::uint32_t> type_sizes_;  // by CTypeID
};

}  // namespace luaspy
