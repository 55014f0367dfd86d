#include "luastate/live_pc.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr int certain = 64;   // scores stop here, so that they can change when a module is replaced

}  // namespace

std::array<Address, LivePc::places> LivePc::values(const NativeFrame& execute, const Memory& stack) {
  std::array<Address, places> values{};
  std::size_t place = 0;
  for (const unsigned number : callee_saved_registers) values[place++] = execute.registers[number];
  if (execute.cfa <= execute.sp) return values;
  const std::size_t words = std::min<std::size_t>((execute.cfa - execute.sp) / 8, frame_slots);
  std::array<Address, frame_slots> slots;
  const Address lowest = execute.cfa - 8 * words;
  if (!stack.read(lowest, std::as_writable_bytes(std::span(slots).first(words)))) return values;
  for (std::size_t i = 0; i < words; ++i) values[place + i] = slots[words - 1 - i];  // place is the distance from the CFA
  return values;
}

void LivePc::learn(const NativeFrame& execute, const LuaCall& call, const Memory& stack) {
  if (!call.has_pc(call.saved_pc)) return;
  Evidence& evidence = by_function_[execute.function];
  const auto now = values(execute, stack);
  for (std::size_t i = 0; i < places; ++i) {
    if (now[i] == call.saved_pc) evidence.score[i] = std::min(evidence.score[i] + 1, certain);
    else if (evidence.score[i] > 0) evidence.score[i] -= 2;  // a place that holds it by chance holds something else next time
  }
}

Address LivePc::pc(const NativeFrame& execute, const LuaCall& call, const Memory& stack, const Core& core) {
  Evidence& evidence = by_function_[execute.function];
  if (!evidence.hinted) {
    evidence.hinted = true;
    const auto steps = steps_of_four(core.code(execute));
    for (std::size_t i = 0; i < callee_saved_registers.size(); ++i) evidence.score[i] += std::min(steps[callee_saved_registers[i]], 6);
  }
  const auto now = values(execute, stack);
  std::size_t best = places;
  for (std::size_t i = 0; i < places; ++i) {
    if (!call.has_pc(now[i])) continue;
    // Without evidence only registers count: a frame has stale words.
    const int needed = i < callee_saved_registers.size() ? 0 : 1;
    if (evidence.score[i] >= needed && (best == places || evidence.score[i] > evidence.score[best])) best = i;
  }
  return best != places ? now[best] : call.saved_pc;
}

// Intel SDM: REX.W 83 /0 ib is add r64, imm8; REX.W 8D /r with an 8-bit displacement is lea r64, [r64 + disp8].
std::array<int, register_count> LivePc::steps_of_four(std::span<const std::byte> code) {
  constexpr std::array dwarf_number = {rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15};  // by encoding
  std::array<int, register_count> count{};
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(code[i]); };
  for (std::size_t i = 0; i + 4 <= code.size(); ++i) {
    if ((byte(i) & 0xf8) != 0x48 || byte(i + 3) != 4) continue;
    const unsigned high = (byte(i) & 1) << 3, modrm = byte(i + 2);
    const bool add = byte(i + 1) == 0x83 && (modrm & 0xf8) == 0xc0;
    const bool lea = byte(i + 1) == 0x8d && modrm >> 6 == 1 && (modrm & 7) != 4;
    if (add || lea) ++count[dwarf_number[high + (modrm & 7)]];
  }
  return count;
}

}  // namespace luaspy
