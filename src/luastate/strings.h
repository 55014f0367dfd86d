#pragma once
// Strings of the target: TString (lobject.h), GCstr (lj_obj.h).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "luastate/lua_values.h"

namespace luaspy {

inline constexpr std::size_t string_limit = 200;  // characters of a string that are kept

// Reads many strings in three rounds of one batch each: headers; pointers to the characters, where
// there are any; characters.
class StringBatch {
 public:
  StringBatch(const Memory& memory, const LuaValues& lua, std::size_t limit)
      : memory_(memory), lua_(lua), limit_(limit) {}

  // Calls `store(index, text)` for every string that could be read, in order. Subtracts what was
  // read from `bytes_left`, and reads only strings that certainly fit into it.
  template <typename Store>
  void read(std::span<const Address> objects, std::size_t& bytes_left, Store store) {
    const std::size_t longest = header_size() + sizeof(Address) + limit_;
    for (std::size_t first = 0, count = 0; first < objects.size(); first += count) {
      count = std::min({strings_at_once, objects.size() - first, bytes_left / longest});
      if (count == 0) return;
      bytes_left -= read_some(objects.subspan(first, count));
      for (std::size_t i = 0; i < count; ++i) {
        if (texts_[i]) store(first + i, std::move(*texts_[i]));
      }
    }
  }

 private:
  static constexpr std::size_t strings_at_once = 4096;
  // Where they are.
  struct Text {
    Address address = 0;  // 0: a pointer to them must be read first, at `pointer`
    Address pointer = 0;
    std::size_t size = 0;
  };
  std::size_t header_size() const { return lua_.string_header_size(); }
  std::optional<Text> text_of(Address object, std::span<const std::byte> header) const;
  std::size_t read_some(std::span<const Address> objects);
  std::size_t read_headers(std::span<const Address> objects, std::span<std::optional<Text>> places);
  std::size_t read_pointers(std::span<std::optional<Text>> places);
  void ask(Address address, std::span<std::byte> into) { requests_.push_back({.address = address, .into = into}); }
  template <typename Answer>
  void run(Answer answer);

  const Memory& memory_;
  const LuaValues& lua_;
  std::size_t limit_;
  std::vector<Memory::Request> requests_;
  std::vector<std::optional<std::string>> texts_;
};

// The characters of the string at `address`, cut at `limit` bytes.
std::optional<std::string> read_string(const Memory& memory, const LuaValues& lua, Address address,
                                       std::size_t limit = string_limit);

// The same by plain reads, of which a snapshot keeps what they have read, as it does not for batches.
std::optional<std::string> read_string_plainly(const Memory& memory, const LuaValues& lua, Address address,
                                               std::size_t limit);

// The length of the string at `address` in bytes; nullopt if there is none.
std::optional<std::uint64_t> string_length(const Memory& memory, const LuaValues& lua, Address address);

}  // namespace luaspy
