#include "arch/x86_64/calls.h"

namespace luaspy::x86_64 {
namespace {

unsigned byte_at(std::span<const std::byte> code, std::size_t at) { return std::to_integer<unsigned>(code[at]); }

Address relative(Address from, std::int32_t displacement) {
  return from + static_cast<Address>(std::int64_t{displacement});
}

constexpr std::size_t direct_length = 5;

std::optional<Address> direct_at(unsigned opcode, Address address, std::span<const std::byte> code) {
  if (code.size() < direct_length || byte_at(code, 0) != opcode) return std::nullopt;
  return relative(address + direct_length, load<std::int32_t>(code, 1));
}

}  // namespace

CallSite call_before(Address return_address, std::span<const std::byte> before) {
  if (before.size() < longest_call) return {};
  const Address start = return_address - direct_length;
  if (const auto target = direct_call_at(start, before.last<direct_length>())) return {CallSite::Kind::direct, *target};
  for (const std::size_t length : {2u, 3u, 4u, 6u, 7u}) {
    const std::size_t at = before.size() - length;
    if (byte_at(before, at) == 0xff && (byte_at(before, at + 1) >> 3 & 7) == 2) return {CallSite::Kind::indirect, 0};
  }
  return {};
}

std::optional<Address> direct_call_at(Address address, std::span<const std::byte> code) {
  return direct_at(0xe8, address, code);
}

std::optional<Address> direct_jump_at(Address address, std::span<const std::byte> code) {
  return direct_at(0xe9, address, code);
}

std::optional<Address> plt_slot(Address address, std::span<const std::byte> entry) {
  if (entry.size() < plt_entry_bytes) return std::nullopt;
  constexpr std::uint32_t endbr64 = 0xfa1e0ff3;  // F3 0F 1E FA
  constexpr unsigned bnd = 0xf2;
  constexpr std::size_t jump_length = 6;  // FF 25 rel32
  std::size_t at = load<std::uint32_t>(entry, 0) == endbr64 ? 4 : 0;
  if (byte_at(entry, at) == bnd) ++at;
  if (byte_at(entry, at) != 0xff || byte_at(entry, at + 1) != 0x25) return std::nullopt;
  return relative(address + at + jump_length, load<std::int32_t>(entry, at + 2));
}

}  // namespace luaspy::x86_64
