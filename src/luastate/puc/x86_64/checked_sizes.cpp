#include "luastate/puc/checked_sizes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "arch/x86_64/instruction.h"

namespace luaspy {
namespace {

using x86_64::Instruction;
using x86_64::read_instruction;

constexpr Address piece = 512, pieces_around = 32;
constexpr Address farthest = 192;  // bytes of code between the comparison and the use of the text
constexpr std::string_view text = "core and library have incompatible numeric types";

struct Found {
  Address at, value;
};

// lea r, [rip + displacement]; mov r32, imm32 in programs at fixed addresses.
std::optional<Address> address_in(const Instruction& instruction, Address next) {
  if (instruction.two_byte) return std::nullopt;
  const bool is_lea = instruction.opcode == 0x8d && instruction.mode() == 0 && (instruction.modrm & 7) == 5;
  if (is_lea) return next + static_cast<Address>(instruction.displacement);
  const bool is_move = instruction.opcode >= 0xb8 && instruction.opcode <= 0xbf && !instruction.wide();
  return is_move ? std::optional(static_cast<Address>(instruction.immediate) & 0xffffffff) : std::nullopt;
}

// cmp r/m64, imm
bool compares(const Instruction& instruction) {
  constexpr unsigned cmp = 7;
  return !instruction.two_byte && (instruction.opcode == 0x81 || instruction.opcode == 0x83) && instruction.wide() &&
         (instruction.modrm >> 3 & 7) == cmp;
}

std::optional<CheckedSizes> sizes_in(Address value) {
  constexpr Address shift = 16;
  const CheckedSizes sizes{value / shift, value % shift};
  constexpr std::array integers = {std::size_t{4}, std::size_t{8}};
  // A long double has 16 bytes, which add 1 to the other factor.
  if (sizes.number == 0 && std::ranges::find(integers, sizes.integer - 1) != integers.end())
    return CheckedSizes{sizes.integer - 1, shift};
  const bool plausible = std::ranges::find(integers, sizes.integer) != integers.end() &&
                         (sizes.number == sizeof(float) || sizes.number == sizeof(double));
  return plausible ? std::optional(sizes) : std::nullopt;
}

// The instructions of one stretch of code that may matter.
void sweep(std::span<const std::byte> code, Address start, std::vector<Found>& addresses,
           std::vector<Found>& compared) {
  for (std::size_t at = 0; at < code.size();) {
    const std::optional<Instruction> instruction = read_instruction(code, at);
    const Address here = start + at;
    at += instruction ? instruction->length : 1;
    if (!instruction) continue;
    const std::optional<Address> address = address_in(*instruction, start + at);
    if (address && plausible_pointer(*address, 1)) addresses.push_back({here, *address});
    if (compares(*instruction)) compared.push_back({here, static_cast<Address>(instruction->immediate)});
  }
}

}  // namespace

std::optional<CheckedSizes> find_checked_sizes(const Memory& memory, Address near) {
  if (!plausible_pointer(near, 1) || near < (pieces_around + 1) * piece) return std::nullopt;
  // In pieces: a program may end in between. The function itself is where instructions begin.
  const Address first = near - pieces_around * piece, end = near + pieces_around * piece;
  std::vector<Found> addresses, compared;
  std::vector<std::byte> code;
  for (Address at = first; at < end; at += piece) {
    code.resize(code.size() + piece);
    const bool is_there = memory.read(at, std::span(code).last(piece));
    if (!is_there) code.resize(code.size() - piece);
    const Address code_end = is_there ? at + piece : at;
    if (is_there && code_end != end && code_end != near) continue;
    sweep(code, code_end - code.size(), addresses, compared);
    code.clear();
  }
  std::vector<std::array<std::byte, text.size()>> texts(addresses.size());
  std::vector<Memory::Request> requests;
  for (std::size_t i = 0; i < addresses.size(); ++i) requests.push_back({addresses[i].value, texts[i], false});
  memory.read_batch(requests);
  std::optional<CheckedSizes> found;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!requests[i].done || std::string_view(reinterpret_cast<const char*>(texts[i].data()), text.size()) != text)
      continue;
    for (const Found& each : compared) {
      const std::optional<CheckedSizes> sizes = sizes_in(each.value);
      if (!sizes || each.at + farthest < addresses[i].at || each.at > addresses[i].at + farthest) continue;
      if (found && (found->integer != sizes->integer || found->number != sizes->number)) return std::nullopt;
      found = sizes;
    }
  }
  return found;
}

}  // namespace luaspy
