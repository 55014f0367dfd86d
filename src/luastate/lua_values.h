#pragma once
// Values and strings: TValue and TString (lobject.h), TValue and GCstr (lj_obj.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/memory.h"
#include "luastate/offset.h"
#include "luastate/value.h"

namespace luaspy {

class LuaValues {
 public:
  // Size of a slot of the Lua stack, and of an array element of a table except in 5.5.
  std::size_t slot_size() const { return sizes_.slot; }
  virtual Value load_value(std::span<const std::byte> slots, std::size_t offset) const = 0;
  std::optional<Value> read_value(const Memory& memory, Address slot) const {
    std::array<std::byte, 32> bytes;
    const auto some = std::span(bytes).first(slot_size());
    if (!plausible_pointer(slot) || !memory.read(slot, some)) return std::nullopt;
    return load_value(some, 0);
  }
  virtual std::string number_text(const Value& number) const = 0;  // as tostring() shows it
  virtual std::string light_userdata_text(std::uint64_t word) const = 0;
  virtual std::string cdata_text(const Memory& memory, Address cdata) const = 0;
  virtual Userdata userdata(const Memory& memory, Address object) const = 0;
  // A userdata of the io library, by its bytes.
  virtual bool is_closed_file(const Memory& memory, Address bytes) const = 0;

  // Of a string (strings.h).
  std::size_t string_header_size() const { return sizes_.string_header; }
  std::size_t string_alignment() const { return sizes_.string_alignment; }
  virtual std::optional<Characters> characters(std::span<const std::byte> header) const = 0;

 protected:
  // What is the same for all objects of a Lua. Bytes.
  struct Sizes {
    Offset slot = 0, string_header = 0, string_alignment = 8, node = 0;
    std::uint64_t first_index = 1;  // of a table's array part
    bool integer_keys = false;      // its keys are integers; false: there are only floats
  };
  explicit LuaValues(const Sizes& sizes) : sizes_(sizes) {}
  ~LuaValues() = default;
  const Sizes& sizes() const { return sizes_; }

 private:
  Sizes sizes_;
};

}  // namespace luaspy
