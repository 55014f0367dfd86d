#include "luastate/puc/puc_lua.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "luastate/puc/walk_puc.h"

namespace luaspy {
namespace {

constexpr std::uint8_t type_bits = 0x3f;  // of an object's tt: its type and its variant

StateFields state_fields(const Layout& layout) {
  constexpr Address most_added = 64;  // programs that embed Lua may add fields to the end of lua_State (tup)
  StateFields fields;
  fields.tt = layout.L_tt;
  fields.marked = static_cast<Offset>(layout.L_tt + 1);
  fields.G = layout.L_G;
  fields.tag = layout.tag_thread;
  fields.anchor = layout.L_errorJmp;
  // lstate.c, lua_newstate: the global_State comes behind the main thread; in 5.5 the main
  // thread is inside of it.
  fields.nearest_G = layout.mainthread_embedded ? -Address{layout.G_mainthread} : global_above(layout);
  fields.farthest_G = layout.mainthread_embedded ? fields.nearest_G : fields.nearest_G + most_added;
  return fields;
}

}  // namespace

PucLua::PucLua(const Layout& layout, NumberTypes numbers)
    : Lua(LuaKind::puc, state_fields(layout), layout.G_registry, layout.closure_nupvalues,
          {.slot = layout.value_size,
           .string_header = layout.string_data,
           .node = layout.node_size,
           .integer_keys = layout.tag_integer != 0xff}),
      layout_(layout),
      numbers_(numbers) {}

std::span<const PucLua* const> puc_luas() {
  // Neither the list nor the Luas are ever freed: a thread may still use them while the process exits.
  static const std::vector<const PucLua*>& all = *[] {
    auto* const each = new std::vector<const PucLua*>;
    using Number = NumberTypes::Number;
    for (const Layout& layout : layouts()) {
      const Number number = layout.value_tt > sizeof(double) ? Number::float80 : Number::unknown;
      each->push_back(new PucLua(layout, {number, NumberTypes::Integer::unknown}));
    }
    return each;
  }();
  return all;
}

const PucLua& puc_lua(const Layout& layout) {
  return *puc_luas()[static_cast<std::size_t>(&layout - layouts().data())];
}

const Layout* puc_layout(const Lua& lua) {
  const auto* const puc = dynamic_cast<const PucLua*>(&lua);
  return puc != nullptr ? &puc->layout() : nullptr;
}

std::string PucLua::name() const { return "Lua " + std::string(layout_.name); }

// ---- Coroutines

// 5.1 has an array of CallInfo, later ones begin with an embedded one.
Address PucLua::first_ci(const Memory& memory, Address L) const {
  const bool is_array = layout_.ci_previous == no_field;
  return is_array ? memory.get<Address>(L + layout_.L_base_ci).value_or(0) : L + layout_.L_base_ci;
}

bool PucLua::situation(const Memory& memory, Address G, Address L, Situation& now) const {
  std::array<std::byte, 256> bytes;
  const auto fields = std::span(bytes).first(layout_.L_size);
  if (!memory.read(L, fields) || load<std::uint8_t>(fields, layout_.L_tt) != layout_.tag_thread ||
      load<Address>(fields, layout_.L_G) != G)
    return false;
  const Address ci = load<Address>(fields, layout_.L_ci), stack = load<Address>(fields, layout_.L_stack),
                top = load<Address>(fields, layout_.L_top);
  if (!plausible_pointer(ci) || !plausible_pointer(stack)) return false;
  now.status = load<std::uint8_t>(fields, layout_.L_status);
  now.has_frames = ci != first_ci(memory, L);
  now.first = stack + slot_size();
  now.has_values = top > now.first;
  now.top = top;
  return true;
}

bool PucLua::has_hook(const Memory& memory, Address, Address L) const {
  return memory.get<std::uint8_t>(L + layout_.L_hookmask).value_or(0) != 0;
}

void PucLua::walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const {
  walk_puc(memory, memory, layout_, L, limits, walk);
}

std::pair<Address, Address> PucLua::stack_of(const Memory& memory, Address L) const {
  return {memory.get<Address>(L + layout_.L_stack).value_or(0),
          memory.get<Address>(L + layout_.L_stack_last).value_or(0)};
}

bool PucLua::function_in_slot(const Memory& memory, Address L, Address slot, LuaCall& call) const {
  return read_function_at(memory, layout_, L, slot, call);
}

// ---- Functions

std::optional<Function> PucLua::function(const Memory& memory, Address, Address closure) const {
  const auto tt = memory.get<std::uint8_t>(closure + object_tt);
  if (!tt) return std::nullopt;
  const bool is_c = layout_.closure_isC != no_field
                        ? memory.get<std::uint8_t>(closure + layout_.closure_isC).value_or(0) != 0
                        : (*tt & type_bits) == (layout_.tag_cclosure & type_bits);
  if (is_c) return Function{0, memory.get<Address>(closure + layout_.cclosure_f).value_or(0)};
  const Address proto = memory.get<Address>(closure + layout_.lclosure_p).value_or(0);
  return proto != 0 ? std::optional(Function{proto, 0}) : std::nullopt;
}

bool PucLua::is_named_by_caller(const LuaCall&) const { return true; }

// Tail calls and hooks are marked in CallInfo, so there is nothing to doubt.
Callee PucLua::check_callee(const Memory&, const Memory&, Address, const ValuePath&, const LuaCall&,
                            const LuaCall&) const {
  return Callee::unknown;
}

// ---- Values

// lua.h: LUA_TNIL to LUA_TTHREAD are 0 to 8 in all releases; the bits above are variants and
// BIT_ISCOLLECTABLE.
Value PucLua::decode(std::span<const std::byte> value, std::uint32_t tag) const {
  using Type = Value::Type;
  constexpr std::uint32_t type_of_tag = 0x0f, collectable = 0x40, true_variant = 0x11;
  if (tag == layout_.tag_float) return load_number(numbers_.number, value);
  if (tag == layout_.tag_integer) return load_integer(numbers_.integer, value);
  const auto word = load<std::uint64_t>(value, 0);
  if (tag == layout_.tag_light_c) return {Type::light_function, word};
  const std::uint32_t type = tag & type_of_tag;
  if (type == 0) return {Type::nil, 0};
  if (type == 1) return {Type::boolean, layout_.boolean_variants ? tag == true_variant : (word & 0xffffffff) != 0};
  if (type == 2) return {Type::light_userdata, word};
  constexpr std::array objects = {Type::string, Type::table, Type::function, Type::userdata, Type::thread};  // from 4
  const bool is_object = layout_.bytecode == Bytecode::lua51 || (tag & collectable) != 0;
  if (type < 4 || type > 8 || !is_object || !plausible_pointer(word)) return {Type::other, word};
  return {objects[type - 4], word};
}

Value PucLua::load_value(std::span<const std::byte> slots, std::size_t offset) const {
  const std::size_t tag_at = offset + layout_.value_tt;
  return decode(slots.subspan(offset, layout_.value_tt),
                layout_.tt_size == 1 ? load<std::uint8_t>(slots, tag_at) : load<std::uint32_t>(slots, tag_at));
}

// lobject.c, tostringbuff: LUAI_NUMFFORMAT, from 5.3 on with ".0" if it would look like an integer.
// 5.5 uses more digits if the usual ones are not enough to read the number back.
std::string PucLua::number_text(const Value& number) const {
  const bool may_need_more = layout_.bytecode == Bytecode::lua55;
  const Digits digits = digits_of(numbers_.number, may_need_more);
  const auto text_of = [&](int count) {
    return number.exponent == 0 ? fmt::format("{:.{}g}", number.number(), count)
                                : fmt::format("{:.{}g}", number.long_number(), count);
  };
  const auto reads_back = [&](const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto is_same = [&](auto value, auto expected) {
      std::from_chars(text.data(), end, value);
      return value == expected;
    };
    if (numbers_.number == NumberTypes::Number::float32) return is_same(0.0F, static_cast<float>(number.number()));
    return number.exponent == 0 ? is_same(0.0, number.number()) : is_same(0.0L, number.long_number());
  };
  std::string text = text_of(digits.usual);
  if (may_need_more && !reads_back(text)) text = text_of(digits.most);
  if (sizes().integer_keys && text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string PucLua::light_userdata_text(std::uint64_t word) const { return fmt::format("light userdata {:#x}", word); }

std::string PucLua::cdata_text(const Memory&, Address) const { return "?"; }

Userdata PucLua::userdata(const Memory& memory, Address object) const {
  const std::uint64_t user_values = layout_.udata_nuvalue != no_field
                                        ? memory.get<std::uint16_t>(object + layout_.udata_nuvalue).value_or(0)
                                        : 0;
  return {object + (user_values == 0 ? layout_.udata_memory : layout_.udata_uv + layout_.value_size * user_values),
          memory.get<Address>(object + layout_.udata_metatable).value_or(0), false};
}

// liolib.c: a FILE*, and from 5.2 on what closes it (luaL_Stream).
bool PucLua::is_closed_file(const Memory& memory, Address bytes) const {
  if (memory.get<Address>(bytes).value_or(0) == 0) return true;
  return layout_.bytecode != Bytecode::lua51 && memory.get<Address>(bytes + 8).value_or(0) == 0;
}

// lobject.h: the object's own tt byte says whether it is short or long.
std::optional<Characters> PucLua::characters(std::span<const std::byte> header) const {
  constexpr std::uint8_t short_string = 0x04, long_string = 0x14;
  const auto tt = static_cast<std::uint8_t>(load<std::uint8_t>(header, object_tt) & type_bits);
  if (tt != short_string && tt != long_string) return std::nullopt;
  switch (layout_.string_form) {
    case StringForm::length_word:
      return Characters{load<std::uint64_t>(header, layout_.string_len)};
    case StringForm::short_long:
      return Characters{tt == short_string ? load<std::uint8_t>(header, layout_.string_shrlen)
                                           : load<std::uint64_t>(header, layout_.string_len)};
    case StringForm::signed_short: {
      const auto shrlen = load<std::int8_t>(header, layout_.string_shrlen);
      if (shrlen >= 0) return Characters{static_cast<std::uint64_t>(shrlen)};
      return Characters{load<std::uint64_t>(header, layout_.string_len), true};
    }
  }
  return std::nullopt;
}

}  // namespace luaspy
