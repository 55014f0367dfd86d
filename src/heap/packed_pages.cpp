#include "heap/packed_pages.h"

namespace luaspy {
namespace {

constexpr std::size_t words = PackedPages::page_size / 8, tags_size = words / 2;
constexpr std::size_t most_packed = 1 + tags_size + PackedPages::page_size;

enum class Form : std::uint8_t { packed, whole };  // the first byte of each page

enum class Tag : std::uint8_t {
  zero,
  one_byte,
  two_bytes,
  four_bytes,
  near,       // 2 bytes: how far it is from its own address
  far,        // 3 bytes: the same
  same_high,  // 4 bytes: the upper half is that of the last word that was stored with one
  known,      // 1 byte: where it is in the table of recent words
  whole,      // 8 bytes
};

// Of each tag, how many bytes follow.
constexpr std::array<std::uint8_t, 16> sizes = {0, 1, 2, 4, 2, 3, 4, 1, 8};

// Both sides keep the same table, of words that take 4 bytes or more.
struct Recent {
  std::array<std::uint64_t, 256> words{};
  std::uint32_t high = 0;

  static std::uint8_t slot(std::uint64_t word) {
    return static_cast<std::uint8_t>((word * 0x9e37'79b9'7f4a'7c15) >> 56);
  }
  void add(std::uint64_t word) {
    words[slot(word)] = word;
    high = static_cast<std::uint32_t>(word >> 32);
  }
};

constexpr std::uint64_t half_of_near = 1 << 15, half_of_far = 1 << 23;

std::pair<Tag, std::uint64_t> pack(std::uint64_t word, Address at, const Recent& recent) {
  if (word == 0) return {Tag::zero, 0};
  if (word < 1 << 8) return {Tag::one_byte, word};
  if (word < 1 << 16) return {Tag::two_bytes, word};
  if (const std::uint8_t slot = Recent::slot(word); recent.words[slot] == word) return {Tag::known, slot};
  if (const std::uint64_t from = word - at + half_of_near; from < 2 * half_of_near) return {Tag::near, from};
  if (const std::uint64_t from = word - at + half_of_far; from < 2 * half_of_far) return {Tag::far, from};
  if (word >> 32 == 0) return {Tag::four_bytes, word};
  if (word >> 32 == recent.high) return {Tag::same_high, word & 0xffff'ffff};
  return {Tag::whole, word};
}

bool is_added(Tag tag) { return tag == Tag::four_bytes || tag == Tag::same_high || tag == Tag::whole; }

}  // namespace

void PackedPages::add(Address address, std::span<const std::byte, page_size> page) {
  if (used_ + most_packed + 8 > block_size) {
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block_size));
    used_ = 0;
  }
  where_.push_back((blocks_.size() - 1) * block_size + used_);
  std::byte* const start = blocks_.back().get() + used_;
  std::byte* const tags = start + 1;
  std::byte* at = tags + tags_size;
  Recent recent;
  for (std::size_t i = 0; i < words; ++i) {
    const auto word = load<std::uint64_t>(page, i * 8);
    const auto [tag, rest] = pack(word, address + i * 8, recent);
    if (is_added(tag)) recent.add(word);
    const auto code = static_cast<std::byte>(tag);
    if (i % 2 == 0) tags[i / 2] = code;
    else tags[i / 2] |= code << 4;
    std::memcpy(at, &rest, sizeof rest);  // of a short one, the next one overwrites the rest
    at += sizes[static_cast<std::size_t>(tag)];
  }
  auto size = static_cast<std::size_t>(at - start);
  *start = static_cast<std::byte>(Form::packed);
  if (size > page_size) {
    *start = static_cast<std::byte>(Form::whole);
    std::memcpy(start + 1, page.data(), page_size);
    size = 1 + page_size;
  }
  used_ += size;
  bytes_ += size;
}

void PackedPages::unpack(std::size_t index, Address address, Page into) const {
  const std::byte* const start = blocks_[where_[index] / block_size].get() + where_[index] % block_size;
  if (*start == static_cast<std::byte>(Form::whole)) {
    std::memcpy(into.data(), start + 1, page_size);
    return;
  }
  const std::byte* const tags = start + 1;
  const std::byte* from = tags + tags_size;
  Recent recent;
  for (std::size_t i = 0; i < words; ++i) {
    const auto tag = static_cast<Tag>(static_cast<std::uint8_t>(tags[i / 2] >> (i % 2 * 4)) & 0xf);
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    const std::uint8_t size = sizes[static_cast<std::size_t>(tag)];
    if (size < sizeof word) word &= (std::uint64_t{1} << size * 8) - 1;
    from += size;
    if (tag == Tag::known) word = recent.words[word];
    else if (tag == Tag::near) word += address + i * 8 - half_of_near;
    else if (tag == Tag::far) word += address + i * 8 - half_of_far;
    else if (tag == Tag::same_high) word |= std::uint64_t{recent.high} << 32;
    if (is_added(tag)) recent.add(word);
    std::memcpy(into.data() + i * 8, &word, sizeof word);
  }
}

}  // namespace luaspy
