#pragma once
// PUC Lua, 5.1 to 5.5: objects are read with the offsets of one layout (layout.h). lua.h says what
// each function does.

#include <map>
#include <mutex>

#include "luastate/lua.h"
#include "luastate/puc/layouts.h"
#include "luastate/puc/number_types.h"

namespace luaspy {

class PucLua : public Lua {
 public:
  // `layout` must outlive it. puc_luas() has one for each layout; others are for tests.
  explicit PucLua(const Layout& layout, NumberTypes numbers = {});
  const Layout& layout() const { return layout_; }

  std::string name() const override;
  const char* misfit(const Memory& memory, Address L) const override;
  const Lua* recognise(const Memory& memory, Address L, std::span<const std::byte> head) const override;
  const Lua* recognise_main(const Memory& memory, Address L, Address G) const override;
  bool is_open(const Memory& memory, Address L, Address G) const override;
  bool is_unprotected(const Memory& memory, Address L) const override;
  bool is_thread_of(const Memory& memory, Address L, Address G) const override;
  Address main_thread(const Memory& memory, Address G) const override;
  bool situation(const Memory& memory, Address G, Address L, Situation& now) const override;
  bool has_hook(const Memory& memory, Address G, Address L) const override;
  void walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const override;
  std::pair<Address, Address> stack_of(const Memory& memory, Address L) const override;
  bool function_in_slot(const Memory& memory, Address L, Address slot, LuaCall& call) const override;
  CollectorState collector(const Memory& memory, Address G) const override;
  Address allocation_function(const Memory& memory, Address G) const override;
  std::array<AddressRange, 3> identity_fields(Address G) const override;
  AddressRange heap_counter(Address G) const override;
  std::int64_t heap_bytes(std::span<const std::byte> counter) const override;
  std::optional<ObjectType> type_of_new(std::uint64_t osize) const override;
  Address first_object(const Memory& memory, Address G) const override;
  bool read_head(const Memory& memory, Address object, ObjectHead& head) const override;
  std::unique_ptr<HeapReader> heap_reader(const Memory& memory, Address G) const override;
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
  const Lua& with_number_types(const Memory& memory, Address G) const override;
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

  // A TValue in two parts: the Value, of which `value` has all bytes, and its tag.
  Value decode(std::span<const std::byte> value, std::uint32_t tag) const;

 protected:
  std::pair<Value, Value> load_node(std::span<const std::byte> node) const override;
  bool visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                   const std::function<bool(std::uint64_t index, const Value& value)>& visit) const override;

 private:
  Address allocation_function_slot(Address G) const;
  const char* misfit(const Memory& memory, Address L, std::span<const std::byte> head) const;
  Address first_ci(const Memory& memory, Address L) const;
  Address call_place(const Memory& memory, const LuaCall& call) const;

  const Layout& layout_;
  NumberTypes numbers_;
  // The same with the types of numbers that states had: at most one for each pair of types.
  mutable std::mutex mutex_;
  mutable std::map<std::pair<NumberTypes::Number, NumberTypes::Integer>, std::unique_ptr<const PucLua>> numbered_;
};

// One for each layout of layouts(), in their order.
std::span<const PucLua* const> puc_luas();
const PucLua& puc_lua(const Layout& layout);  // `layout` is one of layouts()
// The layout of `lua`; nullptr for LuaJIT.
const Layout* puc_layout(const Lua& lua);

}  // namespace luaspy
