// Proto (lobject.h): the object, and the arrays that it points at.

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "luastate/puc/puc_lua.h"
#include "luastate/puc/walk_puc.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::size_t local_size = 16, local_start = 8, local_end = 12;  // lobject.h, LocVar
constexpr std::size_t absline_size = 8;                                  // lobject.h, AbsLineInfo
constexpr std::int8_t absline_marker = -0x80;                            // ldebug.h, ABSLINEINFO

// Compilers stay below these limits for one function (lparser.c: SHRT_MAX locals, 255 upvalues).
constexpr int most_code = 1 << 24, most_constants = 1 << 26, most_locals = 32767, most_upvalues = 255;
// Constants beyond this number are not read: they would name hardly anything, and data files have
// millions of them.
constexpr int most_constants_read = 1 << 20;

// Reads one Proto: the object, its arrays, and then all strings at once.
class PrototypeReader {
 public:
  PrototypeReader(const Memory& memory, const PucLua& lua, std::size_t most_bytes)
      : memory_(memory), lua_(lua), layout_(lua.layout()), bytes_left_(most_bytes) {}

  std::optional<Prototype> read(Address address) {
    object_.resize(layout_.p_size);
    if (!plausible_pointer(address) || !memory_.read(address, object_)) return std::nullopt;
    if (load<std::uint8_t>(object_, object_tt) != layout_.tag_proto) return std::nullopt;
    prototype_.address = address;
    prototype_.bytecode = layout_.bytecode;
    prototype_.line_defined = number(layout_.p_linedefined);
    prototype_.last_line_defined = number(layout_.p_lastlinedefined);
    prototype_.parameters = load<std::uint8_t>(object_, layout_.p_numparams);
    mix(prototype_.fields_hash, load<std::uint8_t>(object_, layout_.p_is_vararg) != 0);
    if (prototype_.line_defined < 0 || prototype_.last_line_defined < 0) return std::nullopt;
    prototype_.source_string = pointer(layout_.p_source);
    ask_string(Kind::source, 0, prototype_.source_string);
    if (!read_code() || !read_lines() || !read_upvalues() || !read_locals() || !read_constants() || !read_children())
      return std::nullopt;
    if (!read_strings()) return std::nullopt;
    return std::move(prototype_);
  }

 private:
  int number(Offset offset) const { return load<std::int32_t>(object_, offset); }
  Address pointer(Offset offset) const { return load<Address>(object_, offset); }

  // Fills `into` from the array that the pointer at `offset` leads to.
  bool read_array(Offset offset, std::size_t alignment, std::span<std::byte> into) {
    if (into.empty()) return true;
    const Address address = pointer(offset);
    if (into.size() > bytes_left_ || !plausible_pointer(address, alignment)) return false;
    bytes_left_ -= into.size();
    return memory_.read(address, into);
  }

  // An array whose elements the caller decodes; nullopt if its size or address cannot be an
  // array's.
  std::optional<std::vector<std::byte>> read_elements(Offset offset, int count, std::size_t element) {
    std::vector<std::byte> bytes;
    const std::size_t size = static_cast<std::size_t>(count) * element;
    if (size > bytes_left_) return std::nullopt;
    bytes.resize(size);
    if (!read_array(offset, alignof(Address), bytes)) return std::nullopt;
    return bytes;
  }

  bool read_code() {
    const int count = number(layout_.p_sizecode);
    if (count <= 0 || count > most_code) return false;
    if (static_cast<std::size_t>(count) * sizeof(std::uint32_t) > bytes_left_) return false;
    prototype_.code_address = pointer(layout_.p_code);
    prototype_.code.resize(static_cast<std::size_t>(count));
    return read_array(layout_.p_code, alignof(std::uint32_t), std::as_writable_bytes(std::span(prototype_.code)));
  }

  bool read_lines() {
    const int count = number(layout_.p_sizelineinfo);
    if (count == 0) return true;
    if (static_cast<std::size_t>(count) != prototype_.code.size()) return false;
    prototype_.lines.resize(prototype_.code.size());
    if (layout_.p_abslineinfo != no_field) return read_relative_lines();
    if (!read_array(layout_.p_lineinfo, alignof(int), std::as_writable_bytes(std::span(prototype_.lines))))
      return false;
    for (int& line : prototype_.lines) line = std::max(line, 0);
    return true;
  }

  // ldebug.c, luaG_getfuncline: each byte is relative to the line before it, unless abslineinfo has
  // the instruction.
  bool read_relative_lines() {
    std::vector<std::int8_t> steps(prototype_.code.size());
    const int count = number(layout_.p_sizeabslineinfo);
    if (count < 0 || static_cast<std::size_t>(count) > steps.size()) return false;
    if (!read_array(layout_.p_lineinfo, 1, std::as_writable_bytes(std::span(steps)))) return false;
    std::vector<std::byte> bases(static_cast<std::size_t>(count) * absline_size);
    if (!read_array(layout_.p_abslineinfo, alignof(int), bases)) return false;
    std::int64_t line = prototype_.line_defined;
    std::size_t next_base = 0;
    for (std::size_t pc = 0; pc < steps.size(); ++pc) {
      if (steps[pc] != absline_marker) line += steps[pc];
      if (next_base < bases.size() && std::cmp_equal(load<std::int32_t>(bases, next_base), pc)) {
        line = load<std::int32_t>(bases, next_base + sizeof(std::int32_t));
        next_base += absline_size;
      }
      line = std::clamp<std::int64_t>(line, 0, std::numeric_limits<int>::max());
      prototype_.lines[pc] = static_cast<int>(line);
    }
    return true;
  }

  bool read_constants() {
    const int count = number(layout_.p_sizek);
    if (count < 0 || count > most_constants) return false;
    const std::optional values = read_elements(layout_.p_k, std::min(count, most_constants_read), layout_.value_size);
    if (!values) return false;
    prototype_.constants.resize(values->size() / layout_.value_size);
    for (std::size_t i = 0; i < prototype_.constants.size(); ++i) {
      constexpr std::uint32_t string_tag = 0x04, long_or_collectable = 0x50;
      const std::size_t at = i * layout_.value_size;
      std::uint32_t tag = load<std::uint8_t>(*values, at + layout_.value_tt);
      if (layout_.tt_size == 4) tag = load<std::uint32_t>(*values, at + layout_.value_tt);
      if ((tag & ~long_or_collectable) == string_tag) ask_string(Kind::constant, i, load<Address>(*values, at));
      else mix_constant(tag, lua_.decode(std::span(*values).subspan(at, layout_.value_tt), tag));
    }
    return true;
  }

  // lua.h, LUA_TBOOLEAN and LUA_TNUMBER, with variants in the bits above. The word of a nil may be
  // anything; up to 5.3 the word of a boolean is an int.
  void mix_constant(std::uint32_t tag, const Value& value) {
    mix(prototype_.fields_hash, tag);
    if ((tag & 0x0f) == 3) mix(prototype_.fields_hash, value.word + value.exponent);
    if (tag == 1 && layout_.tt_size == 4) mix(prototype_.fields_hash, value.word & 1);
  }

  // lobject.h, Proto: in all releases p follows code, and sizep follows sizelineinfo.
  bool read_children() {
    const int count = number(static_cast<Offset>(layout_.p_sizelineinfo + sizeof(std::int32_t)));
    mix(prototype_.fields_hash, static_cast<std::uint32_t>(count));
    prototype_.children.resize(count > 0 && count < most_code
                                   ? std::min<std::size_t>(static_cast<std::size_t>(count), Prototype::most_children)
                                   : 0);
    const bool read = read_array(static_cast<Offset>(layout_.p_code + sizeof(Address)), alignof(Address),
                                 std::as_writable_bytes(std::span(prototype_.children)));
    if (!read) prototype_.children.clear();
    return true;
  }

  // Lua shows "?" for an upvalue without a name. So does this, also if the name cannot be read.
  bool read_upvalues() {
    const int count = number(layout_.p_sizeupvalues);
    if (count < 0 || count > most_upvalues) return false;
    const std::size_t element = layout_.upvalue_desc_size;
    const std::optional descriptions = read_elements(layout_.p_upvalues, count, element);
    if (!descriptions) return false;
    bool named = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto name = load<Address>(*descriptions, i * element);
      named = named || name != 0;
      ask_string(Kind::upvalue, i, name);
    }
    if (named) prototype_.upvalues.assign(static_cast<std::size_t>(count), "?");
    return true;
  }

  bool read_locals() {
    const int count = number(layout_.p_sizelocvars);
    if (count < 0 || count > most_locals) return false;
    const std::optional variables = read_elements(layout_.p_locvars, count, local_size);
    if (!variables) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::size_t at = i * local_size;
      prototype_.locals.push_back({.name = "?",
                                   .start_pc = load<std::int32_t>(*variables, at + local_start),
                                   .end_pc = load<std::int32_t>(*variables, at + local_end)});
      ask_string(Kind::local, i, load<Address>(*variables, at));
    }
    return true;
  }

  // A source may be missing; if it is not a string, this is not a Proto. Constants come last, so
  // that only they are cut when there are too many.
  bool read_strings() {
    prototype_.source = "=?";
    bool source_read = pointer(layout_.p_source) == 0;
    StringBatch(memory_, lua_, string_limit).read(strings_, bytes_left_, [&](std::size_t n, std::string text) {
      const Place& place = places_[n];
      switch (place.kind) {
        case Kind::source:
          prototype_.source = std::move(text), source_read = true;
          break;
        case Kind::constant:
          prototype_.constants[place.index] = std::move(text);
          break;
        case Kind::upvalue:
          prototype_.upvalues[place.index] = std::move(text);
          break;
        case Kind::local:
          prototype_.locals[place.index].name = std::move(text);
          break;
      }
    });
    return source_read;
  }

  enum class Kind : std::uint8_t { source, constant, upvalue, local };
  struct Place {
    Kind kind;
    std::size_t index;
  };
  void ask_string(Kind kind, std::size_t index, Address string) {
    strings_.push_back(string);
    places_.push_back({kind, index});
  }

  const Memory& memory_;
  const PucLua& lua_;
  const Layout& layout_;
  Prototype prototype_;
  std::vector<std::byte> object_;
  std::size_t bytes_left_;
  std::vector<Address> strings_;
  std::vector<Place> places_;  // where each element of strings_ belongs
};

}  // namespace

std::optional<Prototype> PucLua::prototype(const Memory& memory, Address proto, std::size_t most_bytes) const {
  return PrototypeReader(memory, *this, most_bytes).read(proto);
}

std::optional<FunctionPlace> PucLua::place(const Memory& memory, Address proto) const {
  const Layout& layout = layout_;
  std::array<std::byte, 128> bytes;
  const auto object = std::span(bytes).first(layout.p_size);
  if (!plausible_pointer(proto) || !memory.read(proto, object) ||
      load<std::uint8_t>(object, object_tt) != layout.tag_proto)
    return std::nullopt;
  const auto source = load<Address>(object, layout.p_source);
  FunctionPlace place{"=?", load<std::int32_t>(object, layout.p_linedefined), false};
  if (source != 0) place.source = read_string(memory, *this, source).value_or("=?");
  place.is_main = place.line_defined == 0;
  return place.line_defined >= 0 ? std::optional(std::move(place)) : std::nullopt;
}

std::uint64_t PucLua::mark(const Memory& memory, Address proto) const {
  std::array<std::byte, 256> bytes;
  const auto now = std::span(bytes).first(layout_.p_size);
  return memory.read(proto, now) ? mark_of(layout_, now) : 0;
}

std::optional<std::int32_t> PucLua::line_defined(const Memory& memory, Address proto) const {
  return memory.get<std::int32_t>(proto + layout_.p_linedefined);
}

}  // namespace luaspy
