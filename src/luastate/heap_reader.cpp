#include "luastate/heap_reader.h"

#include <algorithm>
#include <limits>

#include "luastate/cycle_detector.h"
#include "luastate/strings.h"

namespace luaspy {

namespace {

constexpr std::uint64_t all_slots = std::numeric_limits<std::uint64_t>::max();
// Of all metatables together: a program has a few of them, with tens of slots each.
constexpr std::uint64_t most_metatable_slots = 1 << 26;

bool is_object(const Value& value) {
  switch (value.type) {
    case Value::Type::string:
    case Value::Type::table:
    case Value::Type::function:
    case Value::Type::userdata:
    case Value::Type::thread:
    case Value::Type::cdata:
    case Value::Type::other:  // prototypes and traces, on the stack or in tables of the parser
      return value.word != 0;
    default:
      return false;
  }
}

// Follows a list until `visit` returns false. True if its end was reached; `most`: of objects, and how
// many are left.
template <typename Visit>
bool follow(const Memory& memory, const LuaHeap& lua, Address first, std::uint64_t& most, Visit visit) {
  CycleDetector circle;
  for (Address object = first; object != 0;) {
    ObjectHead head;
    const bool good = lua.read_head(memory, object, head);
    if (circle.closes(object) || most == 0) return false;
    --most;
    // The youngest object is in the list before its type is set (lj_gc.c, lj_mem_newgco).
    if (!good && (object != first || !plausible_pointer(head.next))) return false;
    if (good && !visit(object, head)) return false;
    object = head.next;
  }
  return true;
}

}  // namespace

HeapReader::HeapReader(const Memory& memory, const Lua& lua, Address G)
    : memory_(memory),
      lua_(lua),
      G_(G),
      form_(lua.find_table_form(memory, G).value_or(lua.stock_table_form())),
      total_(static_cast<std::uint64_t>(std::clamp<std::int64_t>(lua.collector(memory, G).bytes, 0, address_limit))),
      metatable_slots_left_(most_metatable_slots) {}

Address HeapReader::youngest() const { return lua_.first_object(memory_, G_); }

bool HeapReader::visit_by_age(std::uint64_t most, const std::function<bool(Address)>& visit) const {
  bool ended = false;
  const bool whole = follow(memory_, lua_, youngest(), most, [&](Address object, const ObjectHead&) {
    ended = !visit(object);
    return !ended;
  });
  return whole || ended || most == 0;
}

// lgc.c, traversetable: a string with the letters k and v.
HeapReader::Weak HeapReader::weak(Address metatable) const {
  const Address mode = mode_name();
  if (metatable == 0 || mode == 0) return {};
  const auto [known, is_new] = weak_.try_emplace(metatable);
  if (!is_new) return known->second;
  Weak& weak = known->second;
  const std::optional<TableParts> parts = lua_.table_parts(memory_, form_, metatable);
  if (!parts) return weak;
  const std::uint64_t slots = std::min(parts->slots(), metatable_slots_left_);
  metatable_slots_left_ -= slots;
  lua_.visit_entries(memory_, *parts, slots, [&](const Value& key, const Value& value) {
    if (!key.is_object(Value::Type::string) || key.word != mode) return true;
    if (value.is_object(Value::Type::string)) {
      const std::string letters = read_string(memory_, lua_, value.word).value_or("");
      weak = {letters.find('k') != std::string::npos, letters.find('v') != std::string::npos};
    }
    return false;
  });
  return weak;
}

void HeapReader::visit_value(const Value& value, Reference reference,
                             const std::function<void(const Reference&)>& visit) const {
  if (!is_object(value)) return;
  reference.to = value.word;
  visit(reference);
}

// Strings are values, never removed from weak tables (lgc.c, iscleared).
HeapReader::Weak HeapReader::weak_entry(Weak table, const Value& key, const Value& value) {
  return {table.keys && is_object(key) && key.type != Value::Type::string,
          table.values && value.type != Value::Type::string};
}

void HeapReader::visit_weak_references(const HeapObject& object,
                                       const std::function<void(const Reference&)>& visit) const {
  if (object.type != ObjectType::table) return;
  const std::optional<TableParts> parts = lua_.table_parts(memory_, form_, object.address);
  if (!parts) return;
  const Weak weak = this->weak(parts->metatable);
  if (!weak.keys && !weak.values) return;
  lua_.visit_entries(memory_, *parts, all_slots, [&](const Value& key, const Value& value) {
    const Weak entry = weak_entry(weak, key, value);
    if (entry.keys) visit_value(key, {object.address, 0, Link::key}, visit);
    if (entry.values) visit_value(value, {object.address, 0, Link::entry, 0, key}, visit);
    return true;
  });
}

void HeapReader::visit_table(Address table, const std::function<void(const Reference&)>& visit) const {
  const std::optional<TableParts> parts = lua_.table_parts(memory_, form_, table);
  if (!parts) return;
  if (parts->metatable != 0) visit({table, parts->metatable, Link::metatable});
  const Weak weak = this->weak(parts->metatable);
  lua_.visit_entries(memory_, *parts, all_slots, [&](const Value& key, const Value& value) {
    const Weak entry = weak_entry(weak, key, value);
    if (!entry.keys) visit_value(key, {table, 0, Link::key}, visit);
    if (entry.values) return true;
    const bool is_ephemeron = entry.keys && has_ephemerons();
    visit_value(value, {is_ephemeron ? key.word : table, 0, Link::entry, 0, key}, visit);
    return true;
  });
}

void HeapReader::visit_slots(Address first, std::uint64_t count, Reference reference,
                             const std::function<void(const Reference&)>& visit) const {
  if (!plausible_pointer(first) || count > most_stack_slots) return;
  visit_elements(memory_, first, lua_.slot_size(), count, [&](std::span<const std::byte> slot) {
    visit_value(lua_.load_value(slot, 0), reference, visit);
    ++reference.index;
    return true;
  });
}

bool HeapReader::visit_list(Address first, std::uint64_t& most,
                            const std::function<void(Address, std::uint8_t, std::uint8_t)>& visit) const {
  return follow(memory_, lua_, first, most, [&](Address object, const ObjectHead& head) {
    visit(object, head.type, head.marked);
    return true;
  });
}

}  // namespace luaspy
