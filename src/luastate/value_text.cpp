#include "luastate/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "luastate/strings.h"
#include "luastate/tokens.h"

namespace luaspy {
namespace {

constexpr std::size_t name_bytes = 60;         // limit for a metatable's name
constexpr std::uint64_t most_named = 1 << 13;  // slots of the registry that are visited for names of metatables
constexpr std::uint64_t most_peeked = 64;      // slots visited to see that a table is empty, and at least of any other

}  // namespace

ValueText::ValueText(const Memory& memory, const ActiveState& state, Names& names, const ValueLimits& limits,
                     CountingRoom& room)
    : memory_(memory),
      lua_(*state.lua),
      G_(state.G),
      L_(state.L),
      names_(names),
      limits_(limits),
      form_{},
      room_(room) {
  form_ = lua_.find_table_form(memory, G_).value_or(lua_.stock_table_form());
  globals_ = lua_.globals_table(memory, form_, G_, L_);
}

std::string ValueText::text(const Value& value) {
  std::string text;
  append(text, value, 0);
  return text;
}

void ValueText::append(std::string& text, const Value& value, int depth) {
  switch (value.type) {
    case Value::Type::nil:
      text += "nil";
      break;
    case Value::Type::boolean:
      text += value.word != 0 ? "true" : "false";
      break;
    case Value::Type::integer:
      text += std::to_string(value.integer());
      break;
    case Value::Type::number:
      text += lua_.number_text(value);
      break;
    case Value::Type::string:
      text += string_text(value.word);
      break;
    case Value::Type::table:
      append_table(text, value.word, depth);
      break;
    case Value::Type::function:
      text += function_text(value.word);
      break;
    case Value::Type::light_function:
      text += c_function_text(value.word, value.word);
      break;
    case Value::Type::light_userdata:
      text += lua_.light_userdata_text(value.word);
      break;
    case Value::Type::userdata:
      text += userdata_text(value.word);
      break;
    case Value::Type::thread:
      text += thread_text(value.word);
      break;
    case Value::Type::cdata:
      text += lua_.cdata_text(memory_, value.word);
      break;
    case Value::Type::key_index:
      text += fmt::format("key index {}", value.word);
      break;
    case Value::Type::unknown_number:
      text += "number ?";
      break;
    case Value::Type::other:
      text += "?";
      break;
  }
}

std::string ValueText::string_text(Address string) {
  const std::optional<std::uint64_t> length = string_length(memory_, lua_, string);
  const std::optional<std::string> text = length ? read_string(memory_, lua_, string, limits_.string_bytes)
                                                 : std::nullopt;
  return text ? quoted(*text, *length) : "string ?";
}

void ValueText::append_table(std::string& text, Address table, int depth) {
  if (table == globals_) {
    text += "<globals>";
    return;
  }
  const std::optional<TableParts> parts = lua_.table_parts(memory_, form_, table);
  if (!parts) {
    text += "table ?";
    return;
  }
  if (const std::optional<std::string> name = parts->metatable != 0 ? metatable_name(parts->metatable) : std::nullopt)
    text += *name + ' ';
  if (depth < limits_.depth) {
    append_entries(text, *parts, depth);
    return;
  }
  bool empty = true;
  const bool known = lua_.visit_entries(memory_, *parts, most_peeked,
                                        [&](const Value&, const Value&) { return empty = false; });
  text += empty && known && parts->slots() <= most_peeked ? "{}" : "{…}";
}

void ValueText::append_entries(std::string& text, const TableParts& parts, int depth) {
  std::uint64_t shown = 0, more = 0, next_index = 1;
  const std::uint64_t least = std::max<std::uint64_t>(most_peeked, limits_.entries);
  const std::uint64_t slots = std::min(parts.slots(), std::max(least, room_.slots));
  room_.slots -= std::min(slots, room_.slots);
  text += '{';
  const bool readable = lua_.visit_entries(memory_, parts, slots, [&](const Value& key, const Value& value) {
    if (shown == limits_.entries || text.size() >= limits_.text_bytes) {
      ++more;
      return true;
    }
    if (shown++ != 0) text += ", ";
    append_key(text, key, next_index);
    append(text, value, depth + 1);
    return true;
  });
  const std::string_view separator = shown != 0 ? ", " : "";
  if (!readable) text += fmt::format("{}…(unreadable)", separator);
  else if (parts.slots() > slots && more == 0) text += fmt::format("{}…(not counted)", separator);
  else if (parts.slots() > slots) text += fmt::format("{}…({} more counted, but not all)", separator, more);
  else if (more != 0) text += fmt::format("{}…({} more)", separator, more);
  text += '}';
}

// As in a table constructor: 1, 2, 3 … need no key.
void ValueText::append_key(std::string& text, const Value& key, std::uint64_t& next_index) {
  const bool is_next = key.type == Value::Type::integer
                           ? key.word == next_index
                           : key.type == Value::Type::number && key.number() == static_cast<double>(next_index);
  if (is_next) {
    ++next_index;
    return;
  }
  if (key.type == Value::Type::string) {
    const std::optional<std::string> name = read_string(memory_, lua_, key.word, name_bytes);
    if (name && is_name(*name) && string_length(memory_, lua_, key.word) == name->size()) {
      text += *name + " = ";
      return;
    }
  }
  text += '[';
  append(text, key, limits_.depth);
  text += "] = ";
}

std::string ValueText::function_text(Address closure) {
  const std::optional<Function> function = lua_.function(memory_, G_, closure);
  if (!function) return "function ?";
  return function->proto != 0 ? proto_text(function->proto) : c_function_text(function->key, closure);
}

std::string ValueText::c_function_text(Address key, Address shown) {
  const std::string name = names_.loaded_name({lua_, G_, memory_}, key);
  if (!name.empty()) return fmt::format("function {} [C]", name);
  const std::string symbol = names_.symbol(key);
  return !symbol.empty() ? "C function " + symbol : fmt::format("C function {:#x}", shown);
}

// Shows a function by its place, as in frames: it does not know its own name. LuaJIT's own
// functions in bytecode have no place.
std::string ValueText::proto_text(Address proto) {
  const std::optional<FunctionPlace> place = lua_.place(memory_, proto);
  if (!place) return "function ?";
  const std::string file = names_.chunk_of({lua_, G_, memory_}, proto, *place);
  const bool is_main = place->is_main;
  if (is_main || place->line_defined != 0)
    return describe({Frame::Kind::lua, is_main ? "main chunk" : "function", file, place->line_defined}, false);
  const std::string name = names_.loaded_name({lua_, G_, memory_}, proto);
  return !name.empty() ? fmt::format("function {}", name) : fmt::format("function ({})", file);
}

// lauxlib.c, luaL_newmetatable: registry[name] is the metatable, from 5.3 on with a __name.
const std::unordered_map<Address, std::string>& ValueText::registered() {
  if (registered_) return *registered_;
  registered_.emplace();
  const std::optional<Value> registry = lua_.read_value(memory_, lua_.registry_slot(G_));
  const auto parts = registry && registry->type == Value::Type::table ? lua_.table_parts(memory_, form_, registry->word)
                                                                      : std::nullopt;
  if (!parts) return *registered_;
  lua_.visit_entries(memory_, *parts, most_named, [&](const Value& key, const Value& value) {
    if (key.type != Value::Type::string || value.type != Value::Type::table) return true;
    if (std::optional<std::string> name = read_string(memory_, lua_, key.word, name_bytes))
      registered_->emplace(value.word, std::move(*name));
    return true;
  });
  return *registered_;
}

std::optional<std::string> ValueText::metatable_name(Address metatable) {
  constexpr std::uint64_t most_searched = 256;
  std::optional<std::string> found;
  if (const auto parts = lua_.table_parts(memory_, form_, metatable)) {
    lua_.visit_entries(memory_, *parts, most_searched, [&](const Value& key, const Value& value) {
      if (key.type != Value::Type::string || value.type != Value::Type::string ||
          string_length(memory_, lua_, key.word) != 6)
        return true;
      if (read_string(memory_, lua_, key.word) == "__name") found = read_string(memory_, lua_, value.word, name_bytes);
      return !found;
    });
  }
  if (!found) {
    if (const auto known = registered().find(metatable); known != registered().end()) found = known->second;
  }
  if (found) found = printable(*found);
  return found;
}

std::string ValueText::userdata_text(Address userdata) {
  const Userdata its = lua_.userdata(memory_, userdata);
  const std::optional<std::string> name = its.metatable != 0 ? metatable_name(its.metatable) : std::nullopt;
  if (its.is_file || name == "FILE*") return file_text(its.bytes);
  return fmt::format("{} {:#x}", name.value_or("userdata"), its.bytes);
}

std::string ValueText::file_text(Address bytes) const {
  if (lua_.is_closed_file(memory_, bytes)) return "file (closed)";
  return fmt::format("file ({:#x})", memory_.get<Address>(bytes).value_or(0));
}

// lcorolib.c, auxstatus; lib_base.c, coroutine.status: running states are not distinguished.
std::string ValueText::thread_text(Address thread) const {
  Situation now;
  if (!lua_.situation(memory_, G_, thread, now)) return fmt::format("coroutine {:#x}", thread);
  const std::string_view word = thread == L_                 ? "running"
                                : now.status == status_yield ? "suspended"
                                : now.status != status_ok    ? "dead"
                                : now.has_frames             ? "normal"
                                : now.has_values             ? "suspended"
                                                             : "dead";
  return fmt::format("coroutine {:#x} ({})", thread, word);
}

}  // namespace luaspy
