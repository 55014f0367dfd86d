#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/luajit_tables.h"

namespace luaspy {
namespace {

constexpr std::size_t slot_size = 8;

// The TValue of a table (lj_obj.h, setgcV).
std::uint64_t table_value(const LuajitLayout& layout, Address table) {
  return ~std::uint64_t{luajit::gct_table} << (layout.gc64 ? 47 : 32) | table;
}

class Evaluation {
 public:
  Evaluation(const Memory& live, const Memory& stopped, const LuajitLayout& layout, const LuaCall& caller)
      : live_(live), stopped_(stopped), layout_(layout), caller_(caller) {}

  std::optional<std::uint64_t> value(const ValuePath& path) const {
    std::optional<std::uint64_t> value = root(path);
    for (const ValuePath::Key& key : path.keys) {
      if (!value) return std::nullopt;
      if (key.is_element) value = get_element(live_, layout_, *value, static_cast<std::uint32_t>(key.index));
      else value = get_field(live_, layout_, *value, constant(key.index));
    }
    return value;
  }

  std::optional<std::uint64_t> reg(int number) const {
    if (caller_.func == 0) return std::nullopt;
    return stopped_.get<std::uint64_t>(caller_.func +
                                       ((layout_.gc64 ? 2 : 1) + static_cast<Address>(number)) * slot_size);
  }

  std::uint64_t environment() const {
    return table_value(layout_, read_ref(live_, layout_, caller_.closure + layout_.fn_env).value_or(0));
  }

  // The collectable constant of an operand: these lie below k (lj_obj.h, proto_kgc).
  Address constant(int index) const {
    const Address k = read_ref(live_, layout_, caller_.proto + layout_.pt_k).value_or(0);
    return read_ref(live_, layout_, k - (static_cast<Address>(index) + 1) * layout_.ref_size).value_or(0);
  }

 private:
  std::optional<std::uint64_t> root(const ValuePath& path) const {
    const auto index = static_cast<Address>(path.index);
    switch (path.root) {
      case ValuePath::Root::slot:
        return reg(path.index);
      case ValuePath::Root::upvalue: {
        const Address upvalue = read_ref(live_, layout_, caller_.closure + layout_.fn_uvptr + index * layout_.ref_size)
                                    .value_or(0);
        if (!plausible_pointer(upvalue) || live_.get<std::uint8_t>(upvalue + layout_.L_gct) != luajit::gct_upvalue)
          return std::nullopt;
        const Address at = read_ref(live_, layout_, upvalue + layout_.uv_v).value_or(0);
        // An open upvalue is a register.
        const std::optional<std::uint64_t> then = stopped_.get<std::uint64_t>(at);
        return then ? then : live_.get<std::uint64_t>(at);
      }
      case ValuePath::Root::global:
        return get_field(live_, layout_, environment(), constant(path.index));
      case ValuePath::Root::event:
      case ValuePath::Root::closure:
      case ValuePath::Root::unknown:
        break;
    }
    return std::nullopt;
  }

  const Memory& live_;
  const Memory& stopped_;
  const LuajitLayout& layout_;
  const LuaCall& caller_;
};

// lj_meta.c: the handler of `event` for `object`; __index and __newindex may lead through tables,
// and __lt replaces a missing __le.
std::optional<std::uint64_t> handler(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                     std::string_view event) {
  constexpr int most_tables = 6;
  const std::string name = "__" + std::string(event);
  std::optional<std::uint64_t> found = get_metafield(memory, layout, object, name);
  for (int i = 0;
       i < most_tables && found && event.ends_with("index") && object_of(layout, *found, luajit::gct_table) != 0; ++i) {
    found = get_metafield(memory, layout, *found, name);
  }
  return !found && event == "le" ? handler(memory, layout, object, "lt") : found;
}

}  // namespace

// LuaJIT leaves no mark where a tail call replaced a function (BC_CALLT): the caller's instruction
// shows what was called first, not what runs now. This finds out whether the two are the same, by
// what the caller's expression refers to.
Callee LuajitLua::check_callee(const Memory& live, const Memory& stopped, Address G, const ValuePath& path,
                               const LuaCall& caller, const LuaCall& callee) const {
  const LuajitLayout& layout = layout_;
  const Evaluation evaluation(live, stopped, layout, caller);
  const auto compare = [](Address expected, Address found) { return expected == found ? Callee::same : Callee::other; };
  if (path.root == ValuePath::Root::closure && path.keys.empty()) {
    const Address proto = evaluation.constant(path.index);
    return proto == 0 ? Callee::unknown : compare(callee.is_lua() ? callee.proto : 0, proto);
  }
  const auto is_callee = [&](std::uint64_t value) {
    const Address function = object_of(layout, value, luajit::gct_function);
    const auto found = function != 0 ? read_function(live, layout, G, function) : std::nullopt;
    if (!found) return Callee::unknown;
    return callee.is_lua() ? compare(callee.proto, found->proto) : compare(callee.key, found->key);
  };
  if (path.root == ValuePath::Root::event) {
    bool is_sure = true;
    Callee result = Callee::unknown;
    for (const int operand : path.operands) {
      const auto value = operand == ValuePath::environment ? evaluation.environment() : evaluation.reg(operand);
      // cdata have their handlers in ctype tables; other values than tables and userdata usually
      // have none.
      if (!value || object_of(layout, *value, luajit::gct_cdata) != 0) is_sure = false;
      const auto found = value ? handler(live, layout, *value, path.event) : std::nullopt;
      const Callee one = found ? is_callee(*found) : Callee::unknown;
      if (one == Callee::same) return one;
      if (one == Callee::other) result = one;
    }
    return is_sure ? result : Callee::unknown;
  }
  std::optional<std::uint64_t> value = evaluation.value(path);
  // lj_meta.c, lj_meta_call: a value that is not a function is called through its metatable.
  if (value && object_of(layout, *value, luajit::gct_function) == 0)
    value = get_metafield(live, layout, *value, "__call");
  return value ? is_callee(*value) : Callee::unknown;
}

}  // namespace luaspy
