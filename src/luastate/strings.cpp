#include "luastate/strings.h"

#include <algorithm>
#include <array>
#include <limits>

namespace luaspy {
namespace {

constexpr std::uint64_t longest_string = std::uint64_t{1} << 46;

}  // namespace

std::optional<StringBatch::Text> StringBatch::text_of(Address object, std::span<const std::byte> header) const {
  const std::optional<Characters> characters = lua_.characters(header);
  if (!characters || characters->length >= longest_string) return std::nullopt;
  const Address first = object + header_size();
  Text text{.size = std::min<std::size_t>(characters->length, limit_)};
  (characters->by_pointer ? text.pointer : text.address) = first;
  return text;
}

template <typename Answer>
void StringBatch::run(Answer answer) {
  if (!requests_.empty()) memory_.read_batch(requests_);
  for (std::size_t n = 0; n < requests_.size(); ++n) answer(n, requests_[n].done);
  requests_.clear();
}

std::size_t StringBatch::read_some(std::span<const Address> objects) {
  std::vector<std::optional<Text>> places(objects.size());
  std::size_t bytes = read_headers(objects, places);
  bytes += read_pointers(places);
  texts_.assign(objects.size(), std::nullopt);
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    texts_[i].emplace(places[i]->size, '\0');
    if (places[i]->size == 0) continue;
    ask(places[i]->address, std::as_writable_bytes(std::span(*texts_[i])));
    wanted.push_back(i);
    bytes += places[i]->size;
  }
  run([&](std::size_t n, bool done) {
    if (!done) texts_[wanted[n]].reset();
  });
  return bytes;
}

std::size_t StringBatch::read_headers(std::span<const Address> objects, std::span<std::optional<Text>> places) {
  const std::size_t size = header_size();
  std::vector<std::byte> headers(objects.size() * size);
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!plausible_pointer(objects[i], lua_.string_alignment())) continue;
    ask(objects[i], std::span(headers).subspan(i * size, size));
    wanted.push_back(i);
  }
  run([&](std::size_t n, bool done) {
    const std::size_t i = wanted[n];
    if (done) places[i] = text_of(objects[i], std::span(headers).subspan(i * size, size));
  });
  return wanted.size() * size;
}

std::size_t StringBatch::read_pointers(std::span<std::optional<Text>> places) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i] || places[i]->pointer == 0) continue;
    ask(places[i]->pointer, std::as_writable_bytes(std::span(&places[i]->address, 1)));
    wanted.push_back(i);
  }
  run([&](std::size_t n, bool done) {
    const std::size_t i = wanted[n];
    if (!done || !plausible_pointer(places[i]->address, 1)) places[i].reset();
  });
  return wanted.size() * sizeof(Address);
}

std::optional<std::string> read_string(const Memory& memory, const LuaValues& lua, Address address, std::size_t limit) {
  std::optional<std::string> result;
  std::size_t bytes_left = std::numeric_limits<std::size_t>::max();
  StringBatch(memory, lua, limit).read(std::span(&address, 1), bytes_left, [&](std::size_t, std::string text) {
    result = std::move(text);
  });
  return result;
}

std::optional<std::string> read_string_plainly(const Memory& memory, const LuaValues& lua, Address address,
                                               std::size_t limit) {
  std::array<std::byte, 64> bytes;
  const auto header = std::span(bytes).first(std::min(lua.string_header_size(), bytes.size()));
  if (!plausible_pointer(address, lua.string_alignment()) || !memory.read(address, header)) return std::nullopt;
  const std::optional<Characters> characters = lua.characters(header);
  if (!characters) return std::nullopt;
  Address at = address + header.size();
  if (characters->by_pointer) at = memory.get<Address>(at).value_or(0);
  std::string text(std::min<std::uint64_t>(characters->length, limit), '\0');
  if (!text.empty() && (!plausible_pointer(at, 1) || !memory.read(at, std::as_writable_bytes(std::span(text)))))
    return std::nullopt;
  return text;
}

std::optional<std::uint64_t> string_length(const Memory& memory, const LuaValues& lua, Address address) {
  std::array<std::byte, 64> bytes;
  const auto header = std::span(bytes).first(std::min(lua.string_header_size(), bytes.size()));
  if (!plausible_pointer(address, lua.string_alignment()) || !memory.read(address, header)) return std::nullopt;
  const std::optional<Characters> characters = lua.characters(header);
  return characters ? std::optional(characters->length) : std::nullopt;
}

}  // namespace luaspy
