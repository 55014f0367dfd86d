#pragma once
// The objects of PUC Lua, 5.1 to 5.5 (lgc.c, freeobj; propagatemark). Offsets are in layout.h.

#include <vector>

#include "luastate/heap_reader.h"
#include "luastate/puc/puc_lua.h"

namespace luaspy {

class PucHeap : public HeapReader {
 public:
  // `memory` and `lua` must outlive it.
  PucHeap(const Memory& memory, const PucLua& lua, Address G);

  bool visit_objects(std::uint64_t most, const std::function<void(const HeapObject&)>& visit) const override;
  bool keeps_order(ObjectType type) const override;
  std::optional<HeapObject> object_at(Address address, bool is_new) const override;
  void visit_references(const HeapObject& object, const std::function<void(const Reference&)>& visit) const override;
  void visit_roots(const std::function<void(const Root&)>& visit) const override;
  std::uint64_t other_bytes() const override;

 protected:
  Address mode_name() const override;
  bool has_ephemerons() const override { return layout_.bytecode != Bytecode::lua51; }

 private:
  using VisitObject = std::function<void(const HeapObject&)>;
  using VisitReference = std::function<void(const Reference&)>;

  template <typename T>
  T field(Address object, Offset offset) const {
    return memory_.get<T>(object + offset).value_or(T{});
  }
  std::optional<ObjectType> type_of(Address object, std::uint8_t tt) const;
  bool is_dead(std::uint8_t marked) const;
  std::uint64_t size_of(Address object, ObjectType type) const;
  std::uint64_t string_size(Address string) const;
  std::uint64_t own_table_size() const;
  std::uint64_t table_size(Address table) const;
  std::uint64_t prototype_size(Address proto) const;
  std::uint64_t thread_size(Address L) const;
  std::uint64_t call_count(Address L) const;
  using VisitOne = std::function<void(Address object, std::uint8_t tt, std::uint8_t marked)>;
  bool visit_finalized(std::uint64_t& most, const VisitOne& visit) const;
  bool visit_strings(std::uint64_t& most, const VisitObject& visit) const;
  void visit_open_upvalues(Address L, const std::function<void(Address upvalue)>& visit) const;
  void visit_prototype(Address proto, const VisitReference& visit) const;
  void visit_thread(Address L, const VisitReference& visit) const;
  void visit_userdata(Address userdata, const VisitReference& visit) const;
  Address stack_end(Address L) const;

  const PucLua& puc_;
  const Layout& layout_;
  const HeapFields& heap_;
  std::uint8_t dead_white_ = 0;
  std::uint64_t added_ = 0;  // bytes that the program has added to lua_State
};

}  // namespace luaspy
