#include "allocations/block_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/word_hash.h"
#include "luastate/heap_reader.h"

namespace luaspy {
namespace {

std::string_view short_name(ObjectType type) {
  return type == ObjectType::lua_function || type == ObjectType::c_function ? "function" : name(type);
}

// 5.1 and LuaJIT: a block of the size that its first bytes, read as an object, ask for. From 5.3 on,
// the program's own bytes come before a lua_State (lstate.c, LX).
std::optional<HeapObject> object_in(const Block& block, const HeapReader& reader) {
  constexpr std::uint64_t most_before = 64;
  if (!block.is_new) return std::nullopt;
  for (std::uint64_t before = 0; before <= most_before; before += sizeof(Address)) {
    const std::optional<HeapObject> object = reader.object_at(block.address + before, true);
    const bool fits = object && (before == 0 || object->type == ObjectType::thread) && object->size == block.size;
    if (fits && (!block.told_type || is_same_type(object->type, *block.told_type))) return object;
    if (block.told_type && *block.told_type != ObjectType::thread) break;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t text_mark(const Memory& memory, const Lua& lua, Address string) {
  constexpr std::uint64_t most = 128;
  std::array<std::byte, 32> header{};
  const auto fields = std::span(header).first(std::min(lua.string_header_size(), header.size()));
  if (!memory.read(string, fields)) return 0;
  const std::optional<Characters> characters = lua.characters(fields);
  if (!characters || characters->by_pointer) return 0;
  const Address first = string + lua.string_header_size(), end = first + characters->length;
  const std::uint64_t size = std::min(characters->length, most);
  std::uint64_t hash = hash_basis;
  mix(hash, characters->length);
  for (const Address from : {first, end - size}) {  // the end of one that is short is read twice
    std::array<std::byte, most> bytes{};
    if (!memory.read(from, std::span(bytes).first(size))) return 0;
    for (const std::byte each : bytes) mix(hash, std::to_integer<std::uint64_t>(each));
  }
  return std::max<std::uint64_t>(hash, 1);
}

bool is_same_type(ObjectType one, ObjectType other) {
  const auto is_closure = [](ObjectType type) {
    return type == ObjectType::lua_function || type == ObjectType::c_function;
  };
  return one == other || (is_closure(one) && is_closure(other));
}

std::string name(const BlockUse& use) {
  if (!use.type) return "[part or growth]";
  if (!use.is_part) return fmt::format("[{}]", short_name(*use.type));
  return *use.type == ObjectType::thread ? "[stack]" : fmt::format("[part of a {}]", short_name(*use.type));
}

// What has grown may have its end in use, not its beginning: the array of 5.5's tables is in the
// middle of its block (ltable.h), and a large hash part has a word before it.
bool has_part(const HeapObject& object, const Block& part, const Memory& memory, const Lua& lua,
              const HeapReader& reader) {
  const auto is_in = [&](Address address) { return address >= part.address && address - part.address < part.size; };
  if (object.type == ObjectType::thread) return is_in(lua.stack_of(memory, object.address).first);
  if (object.type != ObjectType::table) return false;
  const std::optional<TableParts> parts = lua.table_parts(memory, reader.table_form(), object.address);
  return parts && (is_in(parts->array) || is_in(parts->nodes));
}

BlockUse use_of(const Block& block, std::span<const Address> words, const Memory& memory, const Lua& lua,
                const HeapReader& reader) {
  if (const std::optional<HeapObject> object = object_in(block, reader)) {
    const bool is_string = object->type == ObjectType::string;
    return {object->type, false, object->address, is_string ? text_mark(memory, lua, object->address) : 0};
  }
  // Its fields may not be set yet, or the collector has come to it already.
  if (block.told_type) return {block.told_type, false, *block.told_type != ObjectType::thread ? block.address : 0};
  std::vector<Address> seen;
  for (const Address word : words) {
    if (word % sizeof(Address) != 0 || !plausible_pointer(word) || std::ranges::find(seen, word) != seen.end())
      continue;
    seen.push_back(word);
    const std::optional<HeapObject> object = reader.object_at(word, false);
    if (object && has_part(*object, block, memory, lua, reader)) return {object->type, true, object->address};
  }
  return {};
}

BlockUse LearnedUses::resolve(const Place& place, const Block& block, const BlockUse& found) {
  constexpr int least = 3, of_ten = 7;
  std::map<Kind, int>& kinds = seen_[place];
  if (found.type) ++kinds[{*found.type, found.is_part}];
  if (block.told_type || found.is_part) return found;
  int all = 0;
  for (const auto& [kind, count] : kinds) all += count;
  for (const auto& [kind, count] : kinds) {
    if (count < least || count * 10 < all * of_ten) continue;
    const auto [type, is_part] = kind;
    if (found.type == type && found.is_part == is_part) return found;
    return {type, is_part, is_part || type == ObjectType::thread ? 0 : block.address};
  }
  return found;
}

}  // namespace luaspy
