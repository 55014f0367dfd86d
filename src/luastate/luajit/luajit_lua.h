#pragma once
// LuaJIT 2.1: objects are read with the offsets of one LuajitLayout. lua.h says what each function
// does.

#include "luastate/lua.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

class LuajitLua : public Lua {
 public:
  // `layout` is a layout of luajit/layouts.h, which only recognises states, or has everything that
  // find_globals() finds. luajit_lua() keeps one of each; others are for tests.
  explicit LuajitLua(const LuajitLayout& layout);
  const LuajitLayout& layout() const { return layout_; }

  std::string name() const override;
  const char* misfit(const Memory& memory, Address L) const override;
  const Lua* recognise(const Memory& memory, Address L, std::span<const std::byte> head) const override;
  const Lua* recognise_main(const Memory& memory, Address L, Address G) const override;
  bool is_open(const Memory& memory, Address L, Address G) const override;
  bool is_unprotected(const Memory& memory, Address L) const override;
  bool is_thread_of(const Memory& memory, Address L, Address G) const override;
  Address main_thread(const Memory& memory, Address G) const override;
  std::vector<FoundField> found_fields() const override;
  bool situation(const Memory& memory, Address G, Address L, Situation& now) const override;
  bool has_hook(const Memory& memory, Address G, Address L) const override;
  void walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const override;
  std::pair<Address, Address> stack_of(const Memory& memory, Address L) const override;
  bool function_in_slot(const Memory& memory, Address L, Address slot, LuaCall& call) const override;
  CollectorState collector(const Memory& memory, Address G) const override;
  Address finalizer_thread(const Memory& memory, Address G) const override;
  Address allocation_function(const Memory& memory, Address G) const override;
  std::array<AddressRange, 3> identity_fields(Address G) const override;
  AddressRange heap_counter(Address G) const override;
  std::int64_t heap_bytes(std::span<const std::byte> counter) const override;
  Address first_object(const Memory& memory, Address G) const override;
  bool read_head(const Memory& memory, Address object, ObjectHead& head) const override;
  std::unique_ptr<HeapReader> heap_reader(const Memory& memory, Address G) const override;
  std::optional<AllocatorMemory> allocator(const Memory& memory, const AddressSpace& space, Address G) const override;
  SharedLuaMemory shared_memory(const Memory& memory, const ResidentMemory& resident,
                                std::span<const AddressRange> taken) const override;
  std::optional<Prototype> prototype(const Memory& memory, Address proto,
                                     std::size_t most_bytes = most_prototype_bytes) const override;
  std::optional<FunctionPlace> place(const Memory& memory, Address proto) const override;
  std::uint64_t mark(const Memory& memory, Address proto) const override;
  std::optional<std::int32_t> line_defined(const Memory& memory, Address proto) const override;
  std::optional<Function> function(const Memory& memory, Address G, Address closure) const override;
  bool is_named_by_caller(const LuaCall& call) const override;
  Callee check_callee(const Memory& live, const Memory& stopped, Address G, const ValuePath& path,
                      const LuaCall& caller, const LuaCall& callee) const override;
  Value load_value(std::span<const std::byte> slots, std::size_t offset) const override;
  std::string number_text(const Value& number) const override;
  std::string light_userdata_text(std::uint64_t word) const override;
  std::string cdata_text(const Memory& memory, Address cdata) const override;
  Userdata userdata(const Memory& memory, Address object) const override;
  bool is_closed_file(const Memory& memory, Address bytes) const override;
  std::optional<Characters> characters(std::span<const std::byte> header) const override;
  std::optional<TableForm> find_table_form(const Memory& memory, Address G) const override;
  TableForm stock_table_form() const override;
  std::optional<TableParts> table_parts(const Memory& memory, TableForm form, Address table) const override;
  Address globals_table(const Memory& memory, TableForm form, Address G, Address L) const override;
  bool prepares_parameters(const LuaCall& call) const override;
  Address first_local(const Memory& memory, const LuaCall& call) const override;
  Slots varargs(const Memory& memory, const LuaCall& call, std::uint64_t parameters) const override;
  Address first_argument(const Memory& memory, const LuaCall& caller, int called_register,
                         const LuaCall& call) const override;
  Slots c_slots(const Memory& memory, Address L, const LuaWalk& walk, std::size_t index) const override;
  Address upvalue_slot(const Memory& memory, Address closure, std::size_t index) const override;
  Address c_upvalue_slot(Address closure, std::size_t index) const override;
  Address ffi_function(const Memory& live, const Memory& stopped, const LuaCall& call) const override;

 protected:
  std::pair<Value, Value> load_node(std::span<const std::byte> node) const override;

 private:
  LuajitLayout layout_;
};

// The one with this layout, which is made at the first call with it. Any thread may ask.
const LuajitLua& luajit_lua(const LuajitLayout& layout);
// The two layouts: 64-bit references first.
std::span<const LuajitLua* const> luajit_luas();
// The layout of `lua`; nullptr for PUC.
const LuajitLayout* luajit_layout(const Lua& lua);

}  // namespace luaspy
