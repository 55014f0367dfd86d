#include "arch/aarch64/calls.h"

namespace luaspy::aarch64 {
namespace {

// The target of a branch with this opcode: imm26, in instructions.
std::optional<Address> branch_at(std::uint32_t opcode, Address address, std::span<const std::byte> code) {
  if (code.size() < instruction_bytes) return std::nullopt;
  const auto instruction = load<std::uint32_t>(code, 0);
  if (instruction >> 26 != opcode >> 26) return std::nullopt;
  const std::int32_t distance = static_cast<std::int32_t>(instruction << 6) >> 4;  // bytes
  return address + static_cast<Address>(std::int64_t{distance});
}

}  // namespace

CallSite call_before(Address return_address, std::span<const std::byte> before) {
  if (before.size() < instruction_bytes) return {};
  const auto call = before.last<instruction_bytes>();
  if (const auto target = direct_call_at(return_address - instruction_bytes, call))
    return {CallSite::Kind::direct, *target};
  constexpr std::uint32_t blr = 0xd63f0000, which = 0xfefff000;  // bit 24: the modifier of BLRAA is in a register
  return {(load<std::uint32_t>(call, 0) & which) == blr ? CallSite::Kind::indirect : CallSite::Kind::none, 0};
}

std::optional<Address> direct_call_at(Address address, std::span<const std::byte> code) {
  return branch_at(0x94000000, address, code);
}

std::optional<Address> direct_jump_at(Address address, std::span<const std::byte> code) {
  return branch_at(0x14000000, address, code);
}

}  // namespace luaspy::aarch64
