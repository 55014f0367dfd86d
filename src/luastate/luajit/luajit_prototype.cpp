// GCproto (lj_obj.h): one object, in which bytecode, constants and debug information follow the
// fields. In a Prototype of LuaJIT, instruction 0 is the function's header (BC_FUNCF, BC_FUNCV).
// LuaJIT's own functions in bytecode (lj_lib.c) have the source "=[builtin:name]", as in
// lj_debug.c.

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "luastate/luajit/luajit_lua.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::size_t most_locals = 1 << 16;
constexpr std::uint32_t most_constants_read = 1 << 16;  // operands have 16 bits
constexpr std::int32_t builtin_line = -1;               // lj_lib.c, lib_read_lfunc

// lj_debug.h, VARNAMEDEF: locals without a name in the source. 0 ends the list.
constexpr std::array<std::string_view, 7> internal_names = {
    "", "(for index)", "(for limit)", "(for step)", "(for generator)", "(for state)", "(for control)"};

// Reads the object's bytes from one offset on. Reading past its end gives zeros and marks it bad.
class Bytes {
 public:
  Bytes(std::span<const std::byte> bytes, std::size_t at) : bytes_(bytes), at_(std::min(at, bytes.size())) {}

  bool good() const { return good_; }

  std::uint8_t byte() {
    if (at_ == bytes_.size()) good_ = false;
    return good_ ? load<std::uint8_t>(bytes_, at_++) : std::uint8_t{0};
  }

  // Reads up to and including the NUL at its end.
  std::string name() {
    std::string text;
    for (std::uint8_t c = byte(); c != 0; c = byte()) {
      if (text.size() < string_limit) text += static_cast<char>(c);
    }
    return text;
  }

  // ULEB128 of 32 bits.
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint32_t{next & 0x7fU} << shift;
      if (next < 0x80) return value;
    }
    good_ = false;
    return value;
  }

  void back() { --at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  bool good_ = true;
};

class Reader {
 public:
  Reader(const Memory& memory, const LuajitLua& lua, std::size_t most_bytes)
      : memory_(memory), lua_(lua), layout_(lua.layout()), most_bytes_(most_bytes) {}

  std::optional<Prototype> read(Address address) {
    if (!plausible_pointer(address)) return std::nullopt;
    address_ = address;
    const std::uint32_t size = memory_.get<std::uint32_t>(address + layout_.pt_sizept).value_or(0);
    if (size < layout_.pt_size || size > most_bytes_) return std::nullopt;
    object_.resize(size);
    if (!memory_.read(address, object_) || load<std::uint8_t>(object_, layout_.pt_gct) != luajit::gct_proto)
      return std::nullopt;
    prototype_.address = address;
    prototype_.bytecode = bytecode_of(layout_);
    prototype_.parameters = load<std::uint8_t>(object_, layout_.pt_numparams);
    if (!read_code() || !read_lines() || !read_upvalues() || !read_locals() || !read_strings()) return std::nullopt;
    return std::move(prototype_);
  }

 private:
  std::uint32_t number(Offset offset) const { return load<std::uint32_t>(object_, offset); }

  // The offset in the object to which the MRef at `offset` points: 0 if it is NULL, nullopt if it
  // points outside of the object.
  std::optional<std::size_t> place(Offset offset) const {
    const Address address = load_ref(layout_, object_, offset);
    if (address == 0) return 0;
    if (address < address_ + layout_.pt_size || address > address_ + object_.size()) return std::nullopt;
    return address - address_;
  }

  bool read_code() {
    const std::uint32_t count = number(layout_.pt_sizebc);
    if (count == 0 || count > (object_.size() - layout_.pt_size) / sizeof(std::uint32_t)) return false;
    prototype_.code_address = address_ + layout_.pt_size;
    prototype_.code.resize(count);
    std::memcpy(prototype_.code.data(), object_.data() + layout_.pt_size, count * sizeof(std::uint32_t));
    return true;
  }

  // lj_debug.c, lj_debug_line: for each instruction except the header, the bytes say how many lines
  // it is after the first line.
  bool read_lines() {
    const auto first = static_cast<std::int32_t>(number(layout_.pt_firstline)),
               count = static_cast<std::int32_t>(number(layout_.pt_numline));
    if (first == builtin_line) return builtin_ = true;
    if (first < 0 || count < 0 || count > std::numeric_limits<std::int32_t>::max() - first) return false;
    prototype_.line_defined = first;
    prototype_.last_line_defined = first + count;
    const std::optional<std::size_t> at = place(layout_.pt_lineinfo);
    if (!at || *at == 0) return at.has_value();
    const std::size_t size = count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 4;
    if ((prototype_.code.size() - 1) * size > object_.size() - *at) return false;
    prototype_.lines.push_back(first);
    for (std::size_t i = 0; i + 1 < prototype_.code.size(); ++i) {
      const std::size_t where = *at + i * size;
      const std::uint32_t below = size == 1   ? load<std::uint8_t>(object_, where)
                                  : size == 2 ? load<std::uint16_t>(object_, where)
                                              : load<std::uint32_t>(object_, where);
      prototype_.lines.push_back(
          static_cast<int>(std::min<std::int64_t>(std::int64_t{first} + below, std::numeric_limits<int>::max())));
    }
    return true;
  }

  bool read_upvalues() {
    const std::optional<std::size_t> at = place(layout_.pt_uvinfo);
    if (!at || *at == 0) return at.has_value();
    Bytes bytes(object_, *at);
    for (unsigned count = load<std::uint8_t>(object_, layout_.pt_sizeuv); count > 0; --count)
      prototype_.upvalues.push_back(bytes.name());
    return bytes.good();
  }

  bool read_locals() {
    const std::optional<std::size_t> at = place(layout_.pt_varinfo);
    if (!at || *at == 0) return at.has_value();
    Bytes bytes(object_, *at);
    std::uint64_t start = 0;
    for (std::uint8_t kind = bytes.byte(); kind != 0; kind = bytes.byte()) {
      LocalVariable variable;
      if (kind < internal_names.size()) {
        variable.name = internal_names[kind];
      } else {
        bytes.back();
        variable.name = bytes.name();
      }
      start += bytes.number();
      const std::uint64_t end = start + bytes.number();
      if (end > std::numeric_limits<int>::max() || prototype_.locals.size() == most_locals) return false;
      variable.start_pc = static_cast<int>(start);
      variable.end_pc = static_cast<int>(end);
      prototype_.locals.push_back(std::move(variable));
    }
    return bytes.good();
  }

  // Strings are among the constants below k, the first one highest (lj_obj.h, proto_kgc).
  bool read_strings() {
    const std::optional<std::size_t> k = place(layout_.pt_k);
    const std::uint32_t count = number(layout_.pt_sizekgc);
    if (!k || count > (std::max<std::size_t>(*k, layout_.pt_size) - layout_.pt_size) / layout_.ref_size) return false;
    std::vector<Address> strings = {load_ref(layout_, object_, layout_.pt_chunkname)};
    for (std::uint32_t i = 0; i < std::min(count, most_constants_read); ++i)
      strings.push_back(load_ref(layout_, object_, *k - (i + 1) * std::size_t{layout_.ref_size}));
    mix_fields(*k);
    prototype_.source_string = builtin_ ? 0 : strings[0];
    prototype_.constants.resize(strings.size() - 1);
    bool source_read = false;
    std::size_t bytes_left = most_bytes_;
    StringBatch(memory_, lua_, string_limit).read(strings, bytes_left, [&](std::size_t n, std::string text) {
      if (n > 0) prototype_.constants[n - 1] = std::move(text);
      else prototype_.source = builtin_ ? "=[builtin:" + text + ']' : std::move(text), source_read = true;
    });
    read_children(strings);
    return source_read;
  }

  // The constants above k: numbers.
  void mix_fields(std::size_t k) {
    std::uint64_t& hash = prototype_.fields_hash;
    const std::uint32_t numbers = number(layout_.pt_sizekn);
    for (const std::uint32_t field :
         {number(layout_.pt_sizekgc), numbers, std::uint32_t{load<std::uint8_t>(object_, layout_.pt_framesize)}})
      mix(hash, field);
    for (std::size_t at = k, i = 0; k != 0 && i < std::min(numbers, most_constants_read) && at + 8 <= object_.size();
         ++i, at += 8)
      mix(hash, load<std::uint64_t>(object_, at));
  }

  // `constants`: the chunk's name, and the objects among the constants.
  void read_children(const std::vector<Address>& constants) {
    for (std::size_t i = 1; i < constants.size() && prototype_.children.size() < Prototype::most_children; ++i) {
      if (prototype_.constants[i - 1] || !plausible_pointer(constants[i])) continue;
      if (memory_.get<std::uint8_t>(constants[i] + layout_.pt_gct) == luajit::gct_proto)
        prototype_.children.push_back(constants[i]);
    }
  }

  const Memory& memory_;
  const LuajitLua& lua_;
  const LuajitLayout& layout_;
  std::size_t most_bytes_;
  Address address_ = 0;
  std::vector<std::byte> object_;
  Prototype prototype_;
  bool builtin_ = false;
};

}  // namespace

std::optional<Prototype> LuajitLua::prototype(const Memory& memory, Address proto, std::size_t most_bytes) const {
  return Reader(memory, *this, most_bytes).read(proto);
}

std::optional<FunctionPlace> LuajitLua::place(const Memory& memory, Address proto) const {
  std::array<std::byte, 128> bytes;
  const auto object = std::span(bytes).first(layout_.pt_size);
  if (!plausible_pointer(proto) || !memory.read(proto, object) ||
      load<std::uint8_t>(object, layout_.pt_gct) != luajit::gct_proto)
    return std::nullopt;
  const std::string source = read_string(memory, *this, load_ref(layout_, object, layout_.pt_chunkname)).value_or("=?");
  const auto first = load<std::int32_t>(object, layout_.pt_firstline),
             count = load<std::int32_t>(object, layout_.pt_numline);
  if (first == builtin_line) return FunctionPlace{"=[builtin:" + source + ']', 0, false};
  if (first < 0 || count < 0) return std::nullopt;
  return FunctionPlace{source, first, first == 0 && count > 0};
}

}  // namespace luaspy
