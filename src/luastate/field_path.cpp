#include "luastate/field_path.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::uint32_t most_nodes = 512;        // of a table that are searched in the stop: 20 kB
constexpr std::uint32_t most_learned = 1 << 16;  // after it
constexpr std::uint32_t large = 16;              // nodes from which on it is worth to remember where a key is
constexpr std::uint32_t most_compared = 64;      // nodes of a table whose keys are compared by their texts, to be sure
constexpr int most_metatables = 8;               // one behind the other
constexpr std::size_t longest_value = 200;       // bytes of a string

}  // namespace

FieldPaths::FieldPaths(std::vector<std::string> texts) : texts_(std::move(texts)), index_(texts_.size()) {
  texts_.emplace_back("__index");
  for (const std::string& text : texts_) {
    std::uint64_t index = 0;
    std::from_chars(text.data(), text.data() + text.size(), index);
    indexes_.push_back(index);
  }
}

const FieldPaths::State* FieldPaths::find(Address G) const {
  const auto known = states_.find(G);
  return known != states_.end() ? &known->second : nullptr;
}

// What is at the address of a key may have been freed since it was learned.
bool FieldPaths::is_key(const Memory& memory, const State& state, KeyId key) const {
  return state.keys[key] != 0 &&
         read_string_plainly(memory, *state.lua, state.keys[key], texts_[key].size() + 1) == texts_[key];
}

// It may also be in the hash part.
std::optional<Value> FieldPaths::get_element(const Memory& memory, const State& state, const TableParts& parts,
                                             std::uint64_t index) {
  std::optional<Value> found;
  const std::uint64_t slots = std::min<std::uint64_t>(parts.array_size, index + 1);
  const TableParts beginning{parts.array, static_cast<std::uint32_t>(slots), parts.nodes, parts.node_count, 0};
  const bool readable = state.lua->visit_entries(
      memory, beginning, most_nodes, [&](const Value& key, const Value& value) {
        const bool is_it = key.type == Value::Type::integer
                               ? key.word == index
                               : key.type == Value::Type::number && key.number() == static_cast<double>(index);
        if (is_it) found = value;
        return !found;
      });
  if (!found && readable && beginning.slots() <= most_nodes) found.emplace();
  return found;
}

std::optional<Value> FieldPaths::get_raw(const Memory& memory, const State& state, const TableParts& parts,
                                         KeyId key) const {
  if (indexes_[key] != 0) return get_element(memory, state, parts, indexes_[key]);
  if (parts.node_count == 0) return Value();
  if (!is_key(memory, state, key)) return std::nullopt;
  const auto is_it = [&](const Value& value) {
    return value.is_object(Value::Type::string) && value.word == state.keys[key];
  };
  if (const auto known = places_.find(place_id(parts.nodes, key)); known != places_.end()) {
    const auto node = state.lua->node(memory, parts, known->second);
    if (node && is_it(node->first)) return node->second;
  }
  std::optional<Value> found;
  const bool all = parts.node_count <= most_nodes &&
                   state.lua->visit_nodes(memory, parts, most_nodes,
                                          [&](std::uint32_t, const Value& its, const Value& value) {
                                            if (is_it(its)) found = value;
                                            return !found;
                                          });
  if (!found && all) found.emplace();
  return found;
}

std::optional<Value> FieldPaths::get(const Memory& memory, const State& state, Value object, KeyId key) const {
  for (int i = 0; i < most_metatables; ++i) {
    if (object.type == Value::Type::nil) return Value();
    if (!object.is_object(Value::Type::table)) return std::nullopt;
    const std::optional<TableParts> parts = state.lua->table_parts(memory, state.form, object.word);
    if (!parts) return std::nullopt;
    const std::optional<Value> found = get_raw(memory, state, *parts, key);
    if (!found || found->type != Value::Type::nil || parts->metatable == 0) return found;
    const std::optional<TableParts> meta = state.lua->table_parts(memory, state.form, parts->metatable);
    const std::optional<Value> index = meta ? get_raw(memory, state, *meta, index_) : std::nullopt;
    if (!index || index->type == Value::Type::nil) return index;
    object = *index;  // a function would have to be called
  }
  return std::nullopt;
}

std::optional<Value> FieldPaths::follow(const Memory& memory, const State& state, Value root,
                                        std::span<const KeyId> fields) const {
  std::optional<Value> value = root;
  for (const KeyId field : fields) {
    if (value) value = get(memory, state, *value, field);
  }
  return value;
}

void FieldPaths::touch_text(const Memory& memory, const State& state, const Value& value) {
  if (value.type == Value::Type::string) (void)read_string_plainly(memory, *state.lua, value.word, longest_value + 1);
}

std::optional<std::string> FieldPaths::text(const Memory& memory, const State& state, const Value& value) {
  switch (value.type) {
    case Value::Type::boolean:
      return value.word != 0 ? "true" : "false";
    case Value::Type::integer:
      return std::to_string(value.integer());
    case Value::Type::number:
      return state.lua->number_text(value);
    case Value::Type::string: {
      const std::optional<std::string> text = read_string_plainly(memory, *state.lua, value.word, longest_value + 1);
      return text ? std::optional(printable(*text, longest_value)) : std::nullopt;
    }
    case Value::Type::table:
      return "(table)";
    case Value::Type::function:
    case Value::Type::light_function:
      return "(function)";
    case Value::Type::light_userdata:
    case Value::Type::userdata:
      return "(userdata)";
    case Value::Type::thread:
      return "(coroutine)";
    case Value::Type::cdata:
      return "(cdata)";
    case Value::Type::nil:
    case Value::Type::key_index:
    case Value::Type::unknown_number:
    case Value::Type::other:
      break;
  }
  return std::nullopt;
}

std::optional<FieldPaths::Found> FieldPaths::find_by_text(const Memory& memory, const State& state,
                                                          const TableParts& parts, KeyId key) const {
  std::optional<Found> found;
  const std::string& text = texts_[key];
  // Those with the address that is known come first: to read all keys takes time.
  for (const bool by_address : {true, false}) {
    if (found || (by_address && !is_key(memory, state, key)) ||
        (!by_address && is_key(memory, state, key) && parts.node_count > most_compared))
      continue;
    state.lua->visit_nodes(memory, parts, most_learned,
                           [&](std::uint32_t number, const Value& its, const Value& value) {
                             if (!its.is_object(Value::Type::string) || (by_address && its.word != state.keys[key]))
                               return true;
                             if (!by_address && (string_length(memory, *state.lua, its.word) != text.size() ||
                                                 read_string(memory, *state.lua, its.word, text.size() + 1) != text))
                               return true;
                             found = {value, number, its.word};
                             return false;
                           });
  }
  return found;
}

FieldPaths::Learned FieldPaths::learn(const Memory& live, const ActiveState& at, Value root,
                                      std::span<const KeyId> fields, Lesson& lesson) const {
  Learned learned;
  State& state = lesson.state;
  if (const State* const known = find(at.G); state.lua == nullptr && known != nullptr) state = *known;
  if (state.lua == nullptr) {
    const Lua& lua = at.lua->with_number_types(live, at.G);
    state = {&lua, lua.find_table_form(live, at.G).value_or(lua.stock_table_form()),
             std::vector<Address>(texts_.size())};
    learned.something = true;
  }
  const auto look_up = [&](Address table, KeyId key) -> Value {
    const std::optional<TableParts> parts = state.lua->table_parts(live, state.form, table);
    if (indexes_[key] != 0) return parts ? get_element(live, state, *parts, indexes_[key]).value_or(Value()) : Value();
    const std::optional<Found> found = parts ? find_by_text(live, state, *parts, key) : std::nullopt;
    if (!found) return {};
    learned.something |= std::exchange(state.keys[key], found->key) != found->key;
    const auto known = places_.find(place_id(parts->nodes, key));
    if (parts->node_count > large && (known == places_.end() || known->second != found->place)) {
      lesson.places.emplace_back(place_id(parts->nodes, key), found->place);
      learned.something = true;
    }
    return found->value;
  };
  for (const KeyId field : fields) {
    Value next;
    for (int i = 0; i < most_metatables && root.is_object(Value::Type::table) && next.type == Value::Type::nil; ++i) {
      next = look_up(root.word, field);
      const std::optional<TableParts> parts = state.lua->table_parts(live, state.form, root.word);
      root = parts && parts->metatable != 0 ? look_up(parts->metatable, index_) : Value();
    }
    root = next;
  }
  learned.nowhere = root.type == Value::Type::nil && std::ranges::any_of(fields, [&](KeyId field) {
                      return indexes_[field] == 0 && state.keys[field] == 0;
                    });
  return learned;
}

void FieldPaths::keep(Address G, Lesson&& lesson) {
  constexpr std::size_t most_states = 1 << 10, most_places = 1 << 12;  // a program may make them without end
  if (states_.size() > most_states) states_.clear();
  if (places_.size() > most_places) places_.clear();
  states_[G] = std::move(lesson.state);
  for (const auto& [id, place] : lesson.places) places_[id] = place;
}

}  // namespace luaspy
