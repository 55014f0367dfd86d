#include "luastate/puc/puc_heap.h"

#include <algorithm>
#include <array>
#include <bit>

#include "luastate/cycle_detector.h"

namespace luaspy {
namespace {

constexpr std::uint8_t type_bits = 0x3f;  // of tt: LUA_T… and a variant (lobject.h)
constexpr std::uint64_t most_calls = 250'000;

}  // namespace

PucHeap::PucHeap(const Memory& memory, const PucLua& lua, Address G)
    : HeapReader(memory, lua, G),
      puc_(lua),
      layout_(lua.layout()),
      heap_(layout_.heap),
      dead_white_(lua.collector(memory, G).dead_white) {
  const Address main = lua.main_thread(memory, G);
  // lstate.c, LG: the global_State comes right behind the main thread.
  if (!layout_.mainthread_embedded && lua.state().may_be_main(main, G)) added_ = G - main - global_above(layout_);
}

std::unique_ptr<HeapReader> PucLua::heap_reader(const Memory& memory, Address G) const {
  return std::make_unique<PucHeap>(memory, *this, G);
}

Address PucHeap::mode_name() const {
  constexpr Offset tm_mode = 3;  // ltm.h
  return field<Address>(G_, static_cast<Offset>(heap_.G_tmname + tm_mode * sizeof(Address)));
}

// ---- Objects

// lua.h: LUA_TSTRING 4 to LUA_TTHREAD 8; beyond, LUA_TUPVAL and LUA_TPROTO, which changed places in
// 5.4 (lobject.h).
std::optional<ObjectType> PucHeap::type_of(Address object, std::uint8_t tt) const {
  constexpr std::uint8_t plain = 0x0f;
  const bool is_proto = (tt & type_bits) == layout_.tag_proto;
  switch (tt & plain) {
    case 4:
      return ObjectType::string;
    case 5:
      return ObjectType::table;
    case 6: {
      const bool is_c = layout_.closure_isC != no_field ? field<std::uint8_t>(object, layout_.closure_isC) != 0
                                                        : (tt & type_bits) == (layout_.tag_cclosure & type_bits);
      return is_c ? ObjectType::c_function : ObjectType::lua_function;
    }
    case 7:
      return ObjectType::userdata;
    case 8:
      return ObjectType::thread;
    case 9:
    case 10:
      return is_proto ? ObjectType::prototype : ObjectType::upvalue;
    default:
      return std::nullopt;
  }
}

// lgc.c, sweeplist: what is fixed lives, whatever its colour.
bool PucHeap::is_dead(std::uint8_t marked) const {
  return (marked & dead_white_) != 0 && (marked & heap_.fixed_bit) == 0;
}

bool PucHeap::visit_strings(std::uint64_t& most, const VisitObject& visit) const {
  constexpr std::uint32_t most_chains = 1U << 30;
  const auto hash = field<Address>(G_, heap_.G_strt_hash);
  const auto size = field<std::uint32_t>(G_, heap_.G_strt_size);
  if (!plausible_pointer(hash) || size > most_chains) return false;
  bool complete = true;
  const bool readable = visit_elements(memory_, hash, sizeof(Address), size, [&](std::span<const std::byte> chain) {
    complete &= visit_list(load<Address>(chain, 0), most, [&](Address object, std::uint8_t tt, std::uint8_t marked) {
      if (type_of(object, tt) == ObjectType::string)
        visit({object, ObjectType::string, is_dead(marked), believable(string_size(object))});
    });
    return most != 0;
  });
  return readable && complete;
}

// 5.1: each refers to the next one, and the last one to the first.
bool PucHeap::visit_finalized(std::uint64_t& most, const VisitOne& visit) const {
  const Address last = heap_.G_tmudata != no_field ? field<Address>(G_, heap_.G_tmudata) : 0;
  CycleDetector circle;
  for (Address object = last; object != 0;) {
    ObjectHead head;
    if (circle.closes(object) || most == 0 || !puc_.read_head(memory_, object, head)) return false;
    --most;
    visit(object, head.type, head.marked);
    object = head.next != last ? head.next : 0;
  }
  return true;
}

bool PucHeap::visit_objects(std::uint64_t most, const VisitObject& visit) const {
  bool complete = true;
  // Counted, but in no list: 5.3, all (lfunc.h, UpVal); 5.1 and 5.2, open ones (lfunc.c,
  // luaF_findupval).
  const bool has_loose_upvalues = layout_.bytecode == Bytecode::lua53;
  const bool has_loose_open_ones = layout_.bytecode == Bytecode::lua51 || layout_.bytecode == Bytecode::lua52;
  const std::uint64_t most_upvalues = 4 * most;  // many closures share one
  std::vector<Address> upvalues;
  const auto add_upvalue = [&](Address upvalue) {
    if (upvalues.size() < most_upvalues) upvalues.push_back(upvalue);
    else complete = false;
  };
  const auto visit_one = [&](Address object, std::uint8_t tt, std::uint8_t marked) {
    const std::optional<ObjectType> type = type_of(object, tt);
    if (!type) return;
    visit({object, *type, is_dead(marked), believable(size_of(object, *type))});
    if (has_loose_open_ones && *type == ObjectType::thread) {
      visit_open_upvalues(object, [&](Address upvalue) {
        if (most == 0) return;
        --most;
        visit({upvalue, ObjectType::upvalue, is_dead(field<std::uint8_t>(upvalue, object_tt + 1)), heap_.upvalue_size});
      });
    }
    if (!has_loose_upvalues) return;
    if (*type == ObjectType::lua_function) {
      visit_elements(memory_, object + layout_.closure_upvals, sizeof(Address),
                     field<std::uint8_t>(object, layout_.closure_nupvalues), [&](std::span<const std::byte> upvalue) {
                       add_upvalue(load<Address>(upvalue, 0));
                       return true;
                     });
    } else if (*type == ObjectType::thread) {
      visit_open_upvalues(object, add_upvalue);
    }
  };
  const auto follow = [&](Address first) { complete &= visit_list(first, most, visit_one); };
  follow(puc_.first_object(memory_, G_));
  for (const Offset list : {heap_.G_finobj, heap_.G_tobefnz, heap_.G_fixedgc}) {
    if (list != no_field) follow(field<Address>(G_, list));
  }
  complete &= visit_finalized(most, visit_one);
  // From 5.3 on strings are in the lists, too.
  if (layout_.bytecode == Bytecode::lua51 || layout_.bytecode == Bytecode::lua52)
    complete &= visit_strings(most, visit);
  // In 5.2 and 5.3 the main thread is in no list.
  if (layout_.bytecode == Bytecode::lua52 || layout_.bytecode == Bytecode::lua53)
    visit_one(puc_.main_thread(memory_, G_), layout_.tag_thread, 0);
  std::ranges::sort(upvalues);
  upvalues.erase(std::unique(upvalues.begin(), upvalues.end()), upvalues.end());  // clang 14 cannot use ranges::unique
  for (const Address upvalue : upvalues) {
    if (plausible_pointer(upvalue)) visit({upvalue, ObjectType::upvalue, false, heap_.upvalue_size});
  }
  return complete;
}

// lgc.c of 5.1 to 5.3, luaC_linkupval: upvalues come when they are closed. lstring.c of 5.1,
// luaS_newudata: behind the main thread. Strings of 5.1 and short ones of 5.2 are in no list.
bool PucHeap::keeps_order(ObjectType type) const {
  if (type == ObjectType::upvalue) return layout_.bytecode == Bytecode::lua54 || layout_.bytecode == Bytecode::lua55;
  return type != ObjectType::userdata || layout_.bytecode != Bytecode::lua51;
}

std::optional<HeapObject> PucHeap::object_at(Address address, bool is_new) const {
  ObjectHead head;
  if (!puc_.read_head(memory_, address, head)) return std::nullopt;
  const std::optional<ObjectType> type = type_of(address, head.type);
  if (!type || !puc_.collector(memory_, G_).may_be_alive(head.marked, is_new)) return std::nullopt;
  switch (*type) {
    case ObjectType::table:
      return HeapObject{address, *type, false, own_table_size()};
    case ObjectType::prototype:
      return HeapObject{address, *type, false, layout_.p_size};
    case ObjectType::thread:
      return HeapObject{address, *type, false, heap_.thread_size + added_};
    default:
      return HeapObject{address, *type, false, size_of(address, *type)};
  }
}

// ---- Sizes

std::uint64_t PucHeap::size_of(Address object, ObjectType type) const {
  const std::uint64_t count = field<std::uint8_t>(object, layout_.closure_nupvalues);
  switch (type) {
    case ObjectType::string:
      return string_size(object);
    case ObjectType::table:
      return table_size(object);
    case ObjectType::lua_function:
      return layout_.closure_upvals + sizeof(Address) * count;
    case ObjectType::c_function:
      return layout_.cclosure_upvalue + layout_.value_size * count;
    case ObjectType::userdata:
      return puc_.userdata(memory_, object).bytes - object + field<std::uint64_t>(object, heap_.udata_len);
    case ObjectType::thread:
      return thread_size(object);
    case ObjectType::prototype:
      return prototype_size(object);
    case ObjectType::upvalue:
      return heap_.upvalue_size;
    default:
      return 0;
  }
}

// lstring.c, sizelstring; 5.5: luaS_sizelngstr.
std::uint64_t PucHeap::string_size(Address string) const {
  std::array<std::byte, 32> header;
  const auto used = std::span(header).first(layout_.string_data);
  if (!memory_.read(string, used)) return 0;
  const std::optional<Characters> characters = puc_.characters(used);
  if (!characters) return 0;
  if (!characters->by_pointer) return layout_.string_data + characters->length + 1;
  // lobject.h of 5.5: LSTRREG, LSTRFIX, LSTRMEM
  constexpr std::int8_t regular = -1, fixed = -2;
  const auto kind = load<std::int8_t>(used, layout_.string_shrlen);
  if (kind == regular) return heap_.long_string_data + characters->length + 1;
  return kind == fixed ? heap_.long_string_data : heap_.long_string_data + 2 * sizeof(Address);
}

// Programs that add a field to Table move what follows it (Redis).
std::uint64_t PucHeap::own_table_size() const {
  return heap_.table_size + std::uint64_t{table_form().array} - layout_.table_array;
}

std::uint64_t PucHeap::table_size(Address table) const {
  const std::optional<TableParts> parts = puc_.table_parts(memory_, table_form(), table);
  if (!parts) return own_table_size();
  std::uint64_t array = std::uint64_t{parts->array_size} * layout_.value_size;
  // ltable.c of 5.5, concretesize: a Value and a tag each, and an unsigned int.
  if (layout_.array_form == ArrayForm::apart && parts->array_size != 0)
    array = parts->array_size * (layout_.value_tt + std::uint64_t{1}) + sizeof(std::uint32_t);
  std::uint64_t nodes = std::uint64_t{parts->node_count} * layout_.node_size;
  if (parts->node_count >= 1ULL << std::min<unsigned>(heap_.lastfree_log2, 63))
    nodes += layout_.value_tt;  // aligned as a Node
  return own_table_size() + array + nodes;
}

// lfunc.c, luaF_freeproto.
std::uint64_t PucHeap::prototype_size(Address proto) const {
  constexpr Offset flag = 11;
  constexpr std::uint8_t pf_fixed = 4;  // lobject.h of 5.5: the code is in memory of somebody else
  std::array<std::byte, 160> bytes;
  const auto fields = std::span(bytes).first(layout_.p_size);
  if (!memory_.read(proto, fields)) return layout_.p_size;
  const auto count = [&](Offset at) { return std::uint64_t{load<std::uint32_t>(fields, at)}; };
  const bool small_lines = layout_.p_abslineinfo != no_field;
  const bool is_fixed = layout_.bytecode == Bytecode::lua55 && (load<std::uint8_t>(fields, flag) & pf_fixed) != 0;
  constexpr std::uint64_t instruction = 4, local = 16, line = 4, absolute_line = 8;
  std::uint64_t size = layout_.p_size + count(layout_.p_sizek) * layout_.value_size +
                       count(static_cast<Offset>(layout_.p_sizelineinfo + 4)) * sizeof(Address) +
                       count(layout_.p_sizelocvars) * local + count(layout_.p_sizeupvalues) * layout_.upvalue_desc_size;
  if (is_fixed) return size;
  size += count(layout_.p_sizecode) * instruction + count(layout_.p_sizelineinfo) * (small_lines ? 1 : line);
  if (small_lines) size += count(layout_.p_sizeabslineinfo) * absolute_line;
  return size;
}

// How many CallInfos were allocated for it. From 5.2 on they form a list that keeps unused ones, too.
std::uint64_t PucHeap::call_count(Address L) const {
  if (layout_.ci_previous == no_field) {
    constexpr Offset end_below_base = 8;  // lstate.h of 5.1: end_ci, the last one of the array
    const auto end = field<Address>(L, static_cast<Offset>(layout_.L_base_ci - end_below_base)),
               base = field<Address>(L, layout_.L_base_ci);
    return end >= base && end - base < most_calls * layout_.ci_size ? (end - base) / layout_.ci_size + 1 : 0;
  }
  std::uint64_t count = 0;
  CycleDetector circle;
  for (Address ci = field<Address>(L + layout_.L_base_ci, layout_.ci_next);
       plausible_pointer(ci) && count < most_calls && !circle.closes(ci); ci = field<Address>(ci, layout_.ci_next))
    ++count;
  return count;
}

// lstate.c, freestack. EXTRA_STACK is 5; stack_last is before it, in 5.1 one slot further.
std::uint64_t PucHeap::thread_size(Address L) const {
  const auto [stack, last] = puc_.stack_of(memory_, L);
  const std::uint64_t slot = layout_.value_size, extra = layout_.bytecode == Bytecode::lua51 ? 6 : 5;
  const bool has_stack = plausible_pointer(stack) && last > stack && last - stack <= most_stack_slots * slot;
  const std::uint64_t slots = has_stack ? (last - stack) / slot + extra : 0;
  // The main thread is part of global_size.
  const std::uint64_t own = L == puc_.main_thread(memory_, G_) ? 0 : heap_.thread_size + added_;
  return own + slots * slot + call_count(L) * layout_.ci_size;
}

std::uint64_t PucHeap::other_bytes() const {
  std::uint64_t bytes = heap_.global_size + added_ +
                        std::uint64_t{field<std::uint32_t>(G_, heap_.G_strt_size)} * sizeof(Address);
  if (heap_.G_buffsize != no_field) bytes += field<std::uint64_t>(G_, heap_.G_buffsize);
  return bytes;
}

// ---- References

void PucHeap::visit_references(const HeapObject& object, const VisitReference& visit) const {
  if (object.size == 0) return;
  const Address at = object.address;
  const std::uint64_t count = field<std::uint8_t>(at, layout_.closure_nupvalues);
  switch (object.type) {
    case ObjectType::table:
      return visit_table(at, visit);
    case ObjectType::lua_function: {
      visit({at, field<Address>(at, layout_.lclosure_p), Link::prototype});
      std::uint32_t index = 0;
      visit_elements(memory_, at + layout_.closure_upvals, sizeof(Address), count,
                     [&](std::span<const std::byte> slot) {
                       visit({at, load<Address>(slot, 0), Link::upvalue, index++});
                       return true;
                     });
      break;
    }
    case ObjectType::c_function:
      visit_slots(puc_.c_upvalue_slot(at, 0), count, {at, 0, Link::upvalue}, visit);
      break;
    case ObjectType::userdata:
      return visit_userdata(at, visit);
    case ObjectType::thread:
      return visit_thread(at, visit);
    case ObjectType::prototype:
      return visit_prototype(at, visit);
    case ObjectType::upvalue:
      return visit_slots(field<Address>(at, layout_.upval_v), 1, {at, 0, Link::value}, visit);
    default:
      return;
  }
  constexpr Offset env = 24;  // lobject.h of 5.1, ClosureHeader
  if (layout_.bytecode == Bytecode::lua51) visit({at, field<Address>(at, env), Link::environment});
}

void PucHeap::visit_userdata(Address userdata, const VisitReference& visit) const {
  visit({userdata, field<Address>(userdata, layout_.udata_metatable), Link::metatable});
  if (layout_.udata_nuvalue != no_field)
    return visit_slots(userdata + layout_.udata_uv, field<std::uint16_t>(userdata, layout_.udata_nuvalue),
                       {userdata, 0, Link::user_value}, visit);
  const Address user = userdata + heap_.udata_user_value;
  if (heap_.udata_user_tag == no_field) {
    visit({userdata, memory_.get<Address>(user).value_or(0),
           layout_.bytecode == Bytecode::lua51 ? Link::environment : Link::user_value});
  } else {
    std::array<std::byte, 16> bytes;
    const auto value = std::span(bytes).first(layout_.value_tt);
    if (memory_.read(user, value))
      visit_value(puc_.decode(value, field<std::uint8_t>(userdata, heap_.udata_user_tag)),
                  {userdata, 0, Link::user_value}, visit);
  }
}

void PucHeap::visit_prototype(Address proto, const VisitReference& visit) const {
  constexpr std::uint64_t most = 1 << 26;
  constexpr std::size_t locvar_size = 16;  // lobject.h, LocVar: the name comes first, as in Upvaldesc
  const auto count = [&](Offset at) { return std::min<std::uint64_t>(field<std::uint32_t>(proto, at), most); };
  const auto each = [&](Offset array, std::size_t size, std::uint64_t elements, Link link) {
    std::uint32_t index = 0;
    visit_elements(memory_, field<Address>(proto, array), size, elements, [&](std::span<const std::byte> element) {
      visit({proto, load<Address>(element, 0), link, index++});
      return true;
    });
  };
  visit({proto, field<Address>(proto, layout_.p_source), Link::constant});
  const Address constants = field<Address>(proto, layout_.p_k);
  if (plausible_pointer(constants)) {
    visit_elements(memory_, constants, layout_.value_size, count(layout_.p_sizek),
                   [&](std::span<const std::byte> slot) {
                     visit_value(puc_.load_value(slot, 0), {proto, 0, Link::constant}, visit);
                     return true;
                   });
  }
  each(static_cast<Offset>(layout_.p_code + sizeof(Address)), sizeof(Address),
       count(static_cast<Offset>(layout_.p_sizelineinfo + 4)), Link::nested);
  each(layout_.p_upvalues, layout_.upvalue_desc_size, count(layout_.p_sizeupvalues), Link::constant);
  each(layout_.p_locvars, locvar_size, count(layout_.p_sizelocvars), Link::constant);
}

void PucHeap::visit_open_upvalues(Address L, const std::function<void(Address)>& visit) const {
  std::uint64_t left = most_stack_slots;
  CycleDetector circle;
  for (Address upvalue = field<Address>(L, heap_.L_openupval);
       plausible_pointer(upvalue) && left-- > 0 && !circle.closes(upvalue);
       upvalue = field<Address>(upvalue, heap_.upvalue_next))
    visit(upvalue);
}

// Where the used part of the stack ends. L->top is right in a C function, which has nothing above it
// yet; what was there before may have been freed. A Lua function may use everything up to ci->top.
Address PucHeap::stack_end(Address L) const {
  const auto [stack, last] = puc_.stack_of(memory_, L);
  Address top = field<Address>(L, layout_.L_top);
  const Address ci = field<Address>(L, layout_.L_ci);
  LuaCall call;
  if (plausible_pointer(ci) && puc_.function_in_slot(memory_, L, field<Address>(ci, layout_.ci_func), call) &&
      call.is_lua())
    top = std::max(top, field<Address>(ci, static_cast<Offset>(layout_.ci_func + 8)));
  return std::clamp(top, stack, std::max(stack, last));
}

// lgc.c, traversethread. From 5.4 on it keeps its open upvalues alive.
void PucHeap::visit_thread(Address L, const VisitReference& visit) const {
  const Address stack = puc_.stack_of(memory_, L).first;
  visit_slots(stack, (stack_end(L) - stack) / layout_.value_size, {L, 0, Link::slot}, visit);
  if (layout_.L_gt != no_field) visit_slots(L + layout_.L_gt, 1, {L, 0, Link::environment}, visit);
  if (layout_.bytecode == Bytecode::lua53 || layout_.bytecode == Bytecode::lua54 ||
      layout_.bytecode == Bytecode::lua55) {
    std::uint32_t index = 0;
    visit_open_upvalues(L, [&](Address upvalue) { visit({L, upvalue, Link::upvalue, index++}); });
  }
}

void PucHeap::visit_roots(const std::function<void(const Root&)>& visit) const {
  visit({puc_.main_thread(memory_, G_), Root::Kind::main_thread});
  if (const std::optional<Value> registry = puc_.read_value(memory_, puc_.registry_slot(G_)))
    visit({registry->word, Root::Kind::registry});
  // lua.h: LUA_TNIL to LUA_TTHREAD.
  using Type = Value::Type;
  constexpr std::array types = {Type::nil,   Type::boolean,  Type::light_userdata, Type::number, Type::string,
                                Type::table, Type::function, Type::userdata,       Type::thread};
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto metatable = memory_.get<Address>(G_ + heap_.G_mt + i * sizeof(Address)).value_or(0);
    if (metatable != 0) visit({metatable, Root::Kind::metatable, types[i]});
  }
  std::uint64_t most = ~std::uint64_t{0} >> 1;
  const auto visit_all = [&](Address first, Root::Kind kind) {
    visit_list(first, most, [&](Address object, std::uint8_t, std::uint8_t) { visit({object, kind}); });
  };
  constexpr std::uint64_t most_finalized = 1 << 24;
  std::uint64_t left = most_finalized;
  visit_finalized(left, [&](Address object, std::uint8_t, std::uint8_t) { visit({object, Root::Kind::finalizer}); });
  if (heap_.G_tobefnz != no_field) visit_all(field<Address>(G_, heap_.G_tobefnz), Root::Kind::finalizer);
  if (heap_.G_fixedgc != no_field) visit_all(field<Address>(G_, heap_.G_fixedgc), Root::Kind::fixed);
  if (heap_.fixed_bit != 0) {
    visit_strings(most, [&](const HeapObject& string) {
      if ((field<std::uint8_t>(string.address, object_tt + 1) & heap_.fixed_bit) != 0)
        visit({string.address, Root::Kind::fixed});
    });
  }
}

}  // namespace luaspy
