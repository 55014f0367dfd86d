#include "luastate/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "luastate/luajit/luajit_tables.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::size_t name_bytes = 60;           // limit for a metatable's name
constexpr std::uint64_t most_counted = 1 << 13;  // slots of a table that are visited to count its entries
constexpr std::uint64_t most_peeked = 64;        // slots visited to see that a table is empty
constexpr std::uint64_t most_slots = 1 << 16;    // for all tables that a value leads to

bool is_identifier(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digits = "0123456789";
  constexpr std::array keywords = {"and",      "break",  "do",   "else", "elseif", "end",  "false", "for",
                                   "function", "goto",   "if",   "in",   "local",  "nil",  "not",   "or",
                                   "repeat",   "return", "then", "true", "until",  "while"};
  if (text.empty() || digits.find(text[0]) != std::string_view::npos) return false;
  for (const std::string_view keyword : keywords) {
    if (text == keyword) return false;
  }
  return text.find_first_not_of(std::string(letters) + std::string(digits)) == std::string_view::npos;
}

}  // namespace

ValueText::ValueText(const Memory& memory, const Dialect& dialect, Address G, Address L, Names& names,
                     const ValueLimits& limits)
    : memory_(memory), dialect_(dialect), G_(G), L_(L), names_(names), limits_(limits), form_{} {
  if (dialect.puc != nullptr) form_ = find_table_form(memory, *dialect.puc, G).value_or(stock_form(*dialect.puc));
  globals_ = globals_table(memory, dialect, form_, G, L);
}

std::string ValueText::text(const Value& value) {
  std::string text;
  slots_left_ = most_slots;
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
      text += number_text(value.number());
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
    // LuaJIT replaces its upper bits by an index (lj_obj.h, lightudV).
    case Value::Type::light_userdata:
      text += dialect_.luajit != nullptr ? "light userdata" : fmt::format("light userdata {:#x}", value.word);
      break;
    case Value::Type::userdata:
      text += userdata_text(value.word);
      break;
    case Value::Type::thread:
      text += thread_text(value.word);
      break;
    case Value::Type::cdata:
      text += dialect_.luajit != nullptr ? cdata_text(value.word) : "?";
      break;
    case Value::Type::key_index:
      text += fmt::format("key index {}", value.word);
      break;
    case Value::Type::other:
      text += "?";
      break;
  }
}

// lobject.c, tostringbuff: LUAI_NUMFFORMAT, from 5.3 on with ".0" if it would look like an integer.
// 5.5 uses more digits if 15 are not enough to read the number back. lj_strfmt_num.c writes nan
// without a sign.
std::string ValueText::number_text(double number) const {
  if (dialect_.luajit != nullptr && std::isnan(number)) return "nan";
  const Bytecode bytecode = dialect_.luajit != nullptr ? Bytecode::luajit : dialect_.puc->bytecode;
  std::string text = fmt::format("{:.{}g}", number, bytecode == Bytecode::lua55 ? 15 : 14);
  double read_back = 0;
  std::from_chars(text.data(), text.data() + text.size(), read_back);
  if (bytecode == Bytecode::lua55 && read_back != number) text = fmt::format("{:.17g}", number);
  const bool has_integers = dialect_.puc != nullptr && dialect_.puc->tag_integer != 0xff;
  if (has_integers && text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string ValueText::string_text(Address string) {
  const std::optional<std::uint64_t> length = string_length(memory_, dialect_, string);
  const std::optional<std::string> text = length ? read_string(memory_, dialect_, string, limits_.string_bytes)
                                                 : std::nullopt;
  return text ? quoted(*text, *length) : "string ?";
}

void ValueText::append_table(std::string& text, Address table, int depth) {
  if (table == globals_) {
    text += "<globals>";
    return;
  }
  const std::optional<TableParts> parts = read_table_parts(memory_, dialect_, form_, table);
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
  const bool known = visit_entries(memory_, dialect_, *parts, most_peeked,
                                   [&](const Value&, const Value&) { return empty = false; });
  text += empty && known && parts->slots() <= most_peeked ? "{}" : "{…}";
}

void ValueText::append_entries(std::string& text, const TableParts& parts, int depth) {
  std::uint64_t shown = 0, more = 0, next_index = 1;
  const std::uint64_t slots = std::min({parts.slots(), most_counted, slots_left_});
  slots_left_ -= slots;
  text += '{';
  const bool readable = visit_entries(memory_, dialect_, parts, slots, [&](const Value& key, const Value& value) {
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
  else if (parts.slots() > slots) text += fmt::format("{}…(up to {} more)", separator, parts.slots() - shown);
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
    const std::optional<std::string> name = read_string(memory_, dialect_, key.word, name_bytes);
    if (name && is_identifier(*name) && string_length(memory_, dialect_, key.word) == name->size()) {
      text += *name + " = ";
      return;
    }
  }
  text += '[';
  append(text, key, limits_.depth);
  text += "] = ";
}

std::string ValueText::function_text(Address closure) {
  if (dialect_.luajit != nullptr) {
    const std::optional<LuajitFunction> function = read_function(memory_, *dialect_.luajit, G_, closure);
    if (!function) return "function ?";
    return function->proto != 0 ? proto_text(function->proto, function->key) : c_function_text(function->key, closure);
  }
  const Layout& layout = *dialect_.puc;
  constexpr std::size_t object_tt = 8;
  const auto tt = memory_.get<std::uint8_t>(closure + object_tt);
  if (!tt) return "function ?";
  const bool is_c = layout.closure_isC != no_field
                        ? memory_.get<std::uint8_t>(closure + layout.closure_isC).value_or(0) != 0
                        : (*tt & 0x3f) == (layout.tag_cclosure & 0x3f);
  if (is_c) return c_function_text(memory_.get<Address>(closure + layout.cclosure_f).value_or(0), closure);
  return proto_text(memory_.get<Address>(closure + layout.lclosure_p).value_or(0), 0);
}

std::string ValueText::c_function_text(Address key, Address shown) {
  const std::string* const name = names_.loaded_name({dialect_, G_, memory_}, key);
  return name != nullptr ? fmt::format("function {} [C]", *name) : fmt::format("C function {:#x}", shown);
}

// Shows a function by its place, as in frames: it does not know its own name. LuaJIT's own
// functions in bytecode have only `key`.
std::string ValueText::proto_text(Address proto, Address key) {
  const std::optional<FunctionPlace> place = read_place(memory_, dialect_, proto);
  if (!place) return "function ?";
  const std::string file = chunk_name(place->source);
  if (place->is_main) return fmt::format("main chunk ({})", file);
  if (place->line_defined != 0) return fmt::format("function ({}:{})", file, place->line_defined);
  const std::string* const name = key != 0 ? names_.loaded_name({dialect_, G_, memory_}, key) : nullptr;
  return name != nullptr ? fmt::format("function {}", *name) : fmt::format("function ({})", file);
}

// lauxlib.c, luaL_newmetatable: registry[name] is the metatable, from 5.3 on with a __name.
const std::unordered_map<Address, std::string>& ValueText::registered() {
  if (registered_) return *registered_;
  registered_.emplace();
  std::optional<Value> registry = read_value(
      memory_, dialect_, G_ + (dialect_.luajit != nullptr ? dialect_.luajit->G_registry : dialect_.puc->G_registry));
  const auto parts = registry && registry->type == Value::Type::table
                         ? read_table_parts(memory_, dialect_, form_, registry->word)
                         : std::nullopt;
  if (!parts) return *registered_;
  visit_entries(memory_, dialect_, *parts, most_counted, [&](const Value& key, const Value& value) {
    if (key.type != Value::Type::string || value.type != Value::Type::table) return true;
    if (std::optional<std::string> name = read_string(memory_, dialect_, key.word, name_bytes))
      registered_->emplace(value.word, std::move(*name));
    return true;
  });
  return *registered_;
}

std::optional<std::string> ValueText::metatable_name(Address metatable) {
  constexpr std::uint64_t most_searched = 256;
  std::optional<std::string> found;
  if (const auto parts = read_table_parts(memory_, dialect_, form_, metatable)) {
    visit_entries(memory_, dialect_, *parts, most_searched, [&](const Value& key, const Value& value) {
      if (key.type != Value::Type::string || value.type != Value::Type::string ||
          string_length(memory_, dialect_, key.word) != 6)
        return true;
      if (read_string(memory_, dialect_, key.word) == "__name")
        found = read_string(memory_, dialect_, value.word, name_bytes);
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
  if (dialect_.luajit != nullptr) {
    const LuajitLayout& layout = *dialect_.luajit;
    constexpr std::uint8_t io_file = 1;  // lj_obj.h, UDTYPE_IO_FILE
    const Address bytes = userdata + layout.udata_size;
    if (memory_.get<std::uint8_t>(userdata + layout.udata_udtype) == io_file) return file_text(bytes);
    const Address metatable = read_ref(memory_, layout, userdata + layout.tab_metatable).value_or(0);
    return fmt::format("{} {:#x}", (metatable != 0 ? metatable_name(metatable) : std::nullopt).value_or("userdata"),
                       bytes);
  }
  const Layout& layout = *dialect_.puc;
  constexpr Address user_value = 16;
  const std::uint64_t user_values = layout.udata_nuvalue != no_field
                                        ? memory_.get<std::uint16_t>(userdata + layout.udata_nuvalue).value_or(0)
                                        : 0;
  const Address bytes = userdata +
                        (user_values == 0 ? layout.udata_memory : layout.udata_uv + user_value * user_values);
  const Address metatable = memory_.get<Address>(userdata + layout.udata_metatable).value_or(0);
  const std::optional<std::string> name = metatable != 0 ? metatable_name(metatable) : std::nullopt;
  if (name == "FILE*") return file_text(bytes);
  return fmt::format("{} {:#x}", name.value_or("userdata"), bytes);
}

// liolib.c: a FILE*, and from 5.2 on what closes it (luaL_Stream); lib_io.c: a FILE* and flags.
std::string ValueText::file_text(Address bytes) const {
  const Address file = memory_.get<Address>(bytes).value_or(0);
  const bool has_closer = dialect_.puc != nullptr && dialect_.puc->bytecode != Bytecode::lua51;
  if (file == 0 || (has_closer && memory_.get<Address>(bytes + 8).value_or(0) == 0)) return "file (closed)";
  return fmt::format("file ({:#x})", file);
}

// lcorolib.c, auxstatus; lib_base.c, coroutine.status: running states are not distinguished.
std::string ValueText::thread_text(Address thread) const {
  constexpr std::uint8_t yield = 1;  // lua.h, LUA_YIELD
  const auto status_at = dialect_.luajit != nullptr ? dialect_.luajit->L_status : dialect_.puc->L_status;
  const std::optional<std::uint8_t> status = memory_.get<std::uint8_t>(thread + status_at);
  if (!status) return fmt::format("coroutine {:#x}", thread);
  bool runs = false, is_empty = false;
  if (dialect_.luajit != nullptr) {
    const LuajitLayout& layout = *dialect_.luajit;
    const Address base = memory_.get<Address>(thread + layout.L_base).value_or(0),
                  top = memory_.get<Address>(thread + layout.L_top).value_or(0);
    runs = base > read_ref(memory_, layout, thread + layout.L_stack).value_or(0) + (layout.gc64 ? 16 : 8);
    is_empty = top == base;
  } else {
    const Layout& layout = *dialect_.puc;
    const Address ci = memory_.get<Address>(thread + layout.L_ci).value_or(0);
    const bool is_array = layout.ci_previous == no_field;
    runs = ci != (is_array ? memory_.get<Address>(thread + layout.L_base_ci).value_or(0) : thread + layout.L_base_ci);
    is_empty = memory_.get<Address>(thread + layout.L_top) ==
               memory_.get<Address>(thread + layout.L_stack).value_or(0) + 16;
  }
  const std::string_view word = thread == L_       ? "running"
                                : *status == yield ? "suspended"
                                : *status != 0     ? "dead"
                                : runs             ? "normal"
                                : is_empty         ? "dead"
                                                   : "suspended";
  return fmt::format("coroutine {:#x} ({})", thread, word);
}

// lj_ctype.h: the first types have the same numbers in all releases.
std::string ValueText::cdata_text(Address cdata) const {
  const LuajitLayout& layout = *dialect_.luajit;
  const auto type = memory_.get<std::uint16_t>(cdata + layout.cdata_ctypeid);
  constexpr std::uint16_t int64 = 11, uint64 = 12;
  const Address bytes = cdata + layout.cdata_size;
  if (type == int64) return fmt::format("{}LL", memory_.get<std::int64_t>(bytes).value_or(0));
  if (type == uint64) return fmt::format("{}ULL", memory_.get<std::uint64_t>(bytes).value_or(0));
  return type ? fmt::format("cdata {:#x} (ctype {})", bytes, *type) : "cdata ?";
}

}  // namespace luaspy
