#include "input/luajit_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "input/frame_text.h"
#include "input/luajit_fast_functions.h"
#include "input/recording_part.h"

namespace luaspy {
namespace {

constexpr std::uint8_t table_version = 3, last_symbol = 0x80, type_bits = 3;
constexpr std::size_t most_symbols = 1 << 22;
constexpr std::size_t longest_chunk = 1 << 20;  // bytes; a chunk without a name is named by its text

constexpr std::string_view library_prefix = "lj_cf_";  // of the C functions that are fast functions

std::vector<std::string_view> fast_functions() {
  std::vector<std::string_view> names;
  for (std::string_view rest = luajit_fast_functions; !rest.empty();) {
    names.push_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(names.back().size() + 1);
  }
  return names;
}

// "string_rep" is "string.rep", "io_method___gc" is "io.method.__gc". The package library has no fast functions.
bool is_fast_function(std::string_view name) {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> all;
    for (const std::string_view each : fast_functions()) {
      std::ranges::replace(all.emplace_back(each), '.', '_');
    }
    return all;
  }();
  return name.starts_with("package_") || name == "require" || name == "module" ||
         std::ranges::find(known, name) != known.end();
}

bool is_of_vm(std::string_view name) {
  static constexpr std::array of_vm = {"lj_", "lua_", "luaL_", "cpcall", "cpparser", "cpluaopen"};
  return std::ranges::any_of(of_vm, [&](std::string_view prefix) { return name.starts_with(prefix); }) &&
         !name.starts_with(library_prefix);
}

// As Lua shows a chunk's name: "@a.lua", "=stdin", or the text of the chunk itself.
std::string chunk_file(std::string_view chunk) {
  if (chunk.starts_with('@') || chunk.starts_with('=')) return std::string(chunk.substr(1));
  const std::string_view line = chunk.substr(0, chunk.find('\n'));
  return fmt::format("[string \"{}{}\"]", line, line.size() < chunk.size() ? "..." : "");
}

int line_number(std::uint64_t line) {
  return static_cast<int>(std::min<std::uint64_t>(line, std::numeric_limits<int>::max()));
}

// What is written in assembler for the library, and what LuaJIT has as bytecode, has no line.
constexpr std::uint64_t no_line = std::numeric_limits<int>::max();

}  // namespace

std::string LuajitSymbols::read_table(ByteReader& in) {
  constexpr std::size_t head = 7;  // "ljs", the version, three bytes that are reserved
  const std::optional<std::string> start = in.bytes(head, head);
  if (!start || !start->starts_with("ljs")) return "its table of symbols has no head";
  const int version = static_cast<unsigned char>((*start)[3]);
  if (version != table_version)
    return fmt::format("its table of symbols is of version {}; luaspy reads version {}", version, table_version);
  for (;;) {
    const std::int64_t at = in.offset();
    const std::optional<std::uint8_t> header = in.byte();
    if (header && (*header & last_symbol) != 0) return {};
    if (!header || (*header & type_bits) > 2 || !read(static_cast<Symbol>(*header & type_bits), in))
      return fmt::format("byte {}: this is no whole symbol", at);
  }
}

bool LuajitSymbols::has_room_for(std::size_t text) {
  return ++count_ <= most_symbols && (text_bytes_ += text) <= most_text;
}

bool LuajitSymbols::read(Symbol symbol, ByteReader& in) {
  const std::optional<std::uint64_t> id = in.number();
  if (!id) return false;
  if (symbol == Symbol::trace) {
    const std::optional<std::uint64_t> prototype = in.number(), line = in.number();
    if (!prototype || !line || !has_room_for(0)) return false;
    traces_[*id].push_back({lua(*prototype, line_number(*line))});
    return true;
  }
  const std::optional<std::uint64_t> size = in.number();
  std::optional<std::string> name = size ? in.bytes(*size, longest_chunk) : std::nullopt;
  if (!name) return false;
  if (symbol == Symbol::c) {
    std::vector<std::string>& known = c_[*id];
    if (!known.empty() && known.back() == *name) return true;  // the writer repeats its table when a library is loaded
    if (!has_room_for(name->size())) return false;
    if (name->starts_with(library_prefix)) {
      has_library_ = true;
      is_known_build_ = is_known_build_ && is_fast_function(std::string_view(*name).substr(library_prefix.size()));
    }
    known.push_back(std::move(*name));
    return true;
  }
  const std::optional<std::uint64_t> line = in.number();
  if (!line || !has_room_for(name->size())) return false;
  if (name->find('\n') != std::string::npos && alias_index_.try_emplace(*name, aliases_.size() + 1).second)
    aliases_.push_back(*name);
  lua_[*id].push_back({std::move(*name), *line});
  return true;
}

LuajitPlace LuajitSymbols::lua(std::uint64_t prototype, int line) const {
  const auto known = lua_.find(prototype);
  // The reference parsers do so, too: what is no known Lua function may be one of C.
  if (known == lua_.end()) return c(prototype);
  return {LuajitPlace::Kind::lua, prototype, line, static_cast<std::uint32_t>(known->second.size())};
}

LuajitPlace LuajitSymbols::c(std::uint64_t address) const {
  if (address == 0) return {};
  auto next = c_.upper_bound(address);
  const std::size_t generation = next == c_.begin() ? 1 : (--next)->second.size();
  return {LuajitPlace::Kind::c, address, 0, static_cast<std::uint32_t>(generation)};
}

LuajitPlace LuajitSymbols::trace(std::uint64_t number) const {
  const auto known = traces_.find(number);
  return {LuajitPlace::Kind::trace, number, 0,
          known == traces_.end() ? 1 : static_cast<std::uint32_t>(known->second.size())};
}

const LuajitSymbols::LuaFunction* LuajitSymbols::lua_function(const LuajitPlace& place) const {
  const auto known = lua_.find(place.address);
  return known != lua_.end() && place.generation <= known->second.size() ? &known->second[place.generation - 1]
                                                                         : nullptr;
}

const std::string* LuajitSymbols::c_name(const LuajitPlace& place) const {
  auto next = c_.upper_bound(place.address);
  if (next == c_.begin()) return nullptr;
  --next;
  return place.generation <= next->second.size() ? &next->second[place.generation - 1] : nullptr;
}

LuajitSymbols::NativeFunction LuajitSymbols::native(std::uint64_t address) const {
  auto next = c_.upper_bound(address);
  if (next == c_.begin()) return {};
  --next;
  return {next->first, next->second.back()};
}

std::string LuajitSymbols::text(const LuajitPlace& place) const {
  switch (place.kind) {
    case LuajitPlace::Kind::internal:
      break;
    case LuajitPlace::Kind::lua: {
      const LuaFunction* const function = lua_function(place);
      if (function == nullptr) return fmt::format("CFUNC {:#x}", place.address);
      const auto alias = alias_index_.find(function->chunk);
      return alias != alias_index_.end() ? fmt::format("function_alias_{}:{}", alias->second, place.line)
                                         : fmt::format("{}:{}", function->chunk, place.line);
    }
    case LuajitPlace::Kind::c: {
      const std::string* const name = c_name(place);
      return name != nullptr ? fmt::format("{}:{:#x}", *name, native(place.address).start)
                             : fmt::format("CFUNC {:#x}", place.address);
    }
    case LuajitPlace::Kind::trace: {
      const auto known = traces_.find(place.address);
      return known == traces_.end() ? fmt::format("TRACE [{}]", place.address)
                                    : fmt::format("TRACE [{}] started at {}", place.address,
                                                  text(known->second[place.generation - 1].start));
    }
  }
  return "INTERNAL";
}

Frame LuajitSymbols::frame(const LuajitPlace& place) const {
  Frame frame;
  switch (place.kind) {
    case LuajitPlace::Kind::internal:
      return marker("[internal]");
    case LuajitPlace::Kind::c: {
      const std::string* const name = c_name(place);
      frame.name = name != nullptr ? *name : fmt::format("{:#x}", place.address);
      if (is_of_vm(frame.name)) frame.part = Frame::Part::vm;
      // glibc's _start code is under the nearest name that its library exports.
      if (is_start_of_process(frame.name) || frame.name == "__libc_init_first") frame.part = Frame::Part::start;
      return frame;
    }
    case LuajitPlace::Kind::trace: {
      const auto known = traces_.find(place.address);
      if (known == traces_.end()) return marker(fmt::format("[trace {}]", place.address));
      frame = this->frame(known->second[place.generation - 1].start);
      frame.line_is_near = frame.kind == Frame::Kind::lua;
      return frame;
    }
    case LuajitPlace::Kind::lua:
      break;
  }
  const LuaFunction* const function = lua_function(place);
  if (function == nullptr || function->line_defined > no_line) {
    frame.kind = Frame::Kind::c, frame.name = function != nullptr ? function->chunk : "?";
    return frame;
  }
  frame.kind = Frame::Kind::lua;
  frame.file = chunk_file(function->chunk);
  frame.line_defined = line_number(function->line_defined);
  frame.name = frame.line_defined == 0 ? "main chunk" : "function";
  frame.line = place.line;
  return frame;
}

std::string LuajitSymbols::fast_function(std::uint64_t number) const {
  static const std::vector<std::string_view> names = fast_functions();
  if (has_library_ && is_known_build_ && number < names.size())
    return std::string(names[static_cast<std::size_t>(number)]);
  return fmt::format("fast function {}", number);
}

}  // namespace luaspy
