// LuaJIT's virtual machine for x86-64. It is written in assembly (vm_x64.dasc), so its bytes are the
// same in every build, and they are what is looked for. That of another processor is another program.

#include "luastate/luajit/vm_code.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>

#include "arch/x86_64/registers.h"

namespace luaspy {
namespace {

template <std::size_t size>
using Pattern = std::array<std::uint8_t, size>;

// vm_x64.dasc, ins_NEXT: jmp aword [DISPATCH+OP*8], at the end of each bytecode instruction that
// does not end in another way.
constexpr Pattern<4> dispatch = {0x41, 0xff, 0x24, 0xee};
// vm_x64.dasc, saveregs_ after push rbp; restoreregs.
constexpr Pattern<9> save = {0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28};
constexpr Pattern<13> save_more = {0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x48, 0x83, 0xec, 0x28};
constexpr Pattern<10> restore = {0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d};
constexpr Pattern<14> restore_more = {0x48, 0x83, 0xc4, 0x28, 0x41, 0x5c, 0x41,
                                      0x5d, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d};
// ->vm_ffi_call: push rbp; mov rbp, rsp; push rbx; mov rbx, rdi. It follows the VM and has a frame
// of its own.
constexpr Pattern<8> ffi_call = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb};
constexpr std::uint8_t push_rbp = 0x55;
// vm_x86.dasc, BC_JLOOP (32-bit references): mov [rsp], r12; mov [rsp+8], r13; sub rsp, 16. That of
// vm_x64.dasc stores r12 to the frame's lowest word, too, but r13 to the word below it.
constexpr Pattern<13> trace_entry_gc32 = {0x4c, 0x89, 0x24, 0x24, 0x4c, 0x89, 0x6c, 0x24, 0x08, 0x48, 0x83, 0xec, 0x10};

template <std::size_t size>
std::size_t find(std::span<const std::byte> code, const Pattern<size>& pattern, std::size_t from) {
  const auto bytes = std::as_bytes(std::span(pattern));
  const auto found = std::search(code.begin() + static_cast<std::ptrdiff_t>(std::min(from, code.size())), code.end(),
                                 std::boyer_moore_horspool_searcher(bytes.begin(), bytes.end()));
  return static_cast<std::size_t>(found - code.begin());
}

// mov dword [DISPATCH+…vmstate], ~LJ_VMST_EXIT; mov [DISPATCH+…exitno], eax; mov
// [DISPATCH+…parent], ecx; …; mov [DISPATCH+…jit_base], 0; call lj_trace_exit.
std::optional<TraceExit> find_trace_exit(Address address, std::span<const std::byte> code) {
  constexpr std::size_t size = 11 + 7 + 7, farthest = 320;
  const auto is = [&](std::size_t at, std::initializer_list<int> bytes) {
    return at + bytes.size() <= code.size() &&
           std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at),
                      [](int expected, std::byte found) { return expected == std::to_integer<int>(found); });
  };
  for (std::size_t at = 0; at + size + farthest <= code.size(); ++at) {
    if (!is(at, {0x41, 0xc7, 0x86}) || !is(at + 8, {0xff, 0xff, 0xff, 0x41, 0x89, 0x86}) ||
        !is(at + 18, {0x41, 0x89, 0x8e}))
      continue;
    for (std::size_t call = at + size; call < at + farthest; ++call) {
      if (!is(call - 4, {0, 0, 0, 0, 0xe8})) continue;
      return TraceExit{address + call + 5, load<std::int32_t>(code, at + 21), load<std::int32_t>(code, at + 14)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<VmCode> find_vm_code(Address address, std::span<const std::byte> code) {
  constexpr std::size_t fewest = 60, largest_gap = 8192, before = 96, after = 512;
  std::size_t first = 0, last = 0, count = 0;
  for (std::size_t at = find(code, dispatch, 0); at < code.size(); at = find(code, dispatch, at + 1)) {
    if (count >= fewest && at - last > largest_gap) break;
    if (count == 0 || at - last > largest_gap) first = at, count = 0;
    last = at;
    ++count;
  }
  if (count < fewest) return std::nullopt;
  using namespace x86_64;
  VmCode vm;
  const std::size_t ffi = find(code.first(std::min(code.size(), last + after)), ffi_call, last);
  const std::size_t start = first > before ? first - before : 0;
  const std::size_t end = std::min(ffi < last + after ? ffi : last + dispatch.size(), code.size());
  vm.start = address + start;
  vm.end = address + end;
  const auto part = code.subspan(start, end - start);
  const auto collect = [&](const auto& pattern, bool builds) {
    for (std::size_t at = find(part, pattern, 0); at < part.size(); at = find(part, pattern, at + 1)) {
      const bool pushes_rbp = builds && at > 0 && part[at - 1] == std::byte{push_rbp};
      vm.sequences.push_back(
          {vm.start + at - (pushes_rbp ? 1 : 0), vm.start + at + pattern.size(), builds, builds && !pushes_rbp});
    }
    return !vm.sequences.empty();
  };
  vm.trace_exit = find_trace_exit(vm.start, part);
  constexpr unsigned size = 80;  // CFRAME_SIZE: five words, four registers, the return address
  const bool saves_more = !collect(save, true);
  if (saves_more && !collect(save_more, true)) return std::nullopt;
  vm.frame_size = size + (saves_more ? 16 : 0);
  vm.saved = {{rip, 8}, {rbp, 16}, {rbx, 24}, {r15, 32}, {r14, 40}};
  if (saves_more) {
    vm.saved.insert(vm.saved.end(), {{r13, 48}, {r12, 56}});
    vm.also_saved = "r12 and r13";
  }
  vm.saved_by_traces = {{r12, 0}, {r13, find(part, trace_entry_gc32, 0) < part.size() ? 8 : -8}};
  if (saves_more) collect(restore_more, false);
  else collect(restore, false);
  return vm;
}

std::optional<unsigned> VmCode::depth_at(Address pc) const {
  constexpr unsigned word = 8, space = 40;  // CFRAME_SPACE
  for (const Sequence& sequence : sequences) {
    // A push or pop has one byte, or two with a prefix for r8 to r15; the adjustment of sp has
    // four.
    const auto depth_after = [&](Address at) {
      unsigned depth = sequence.builds ? (sequence.pushed_before ? 2 * word : word) : frame_size;
      bool adjusts_first = !sequence.builds;
      for (Address next = sequence.start; next < at;) {
        const Address left = sequence.end - next;
        if (adjusts_first || (sequence.builds && left == 4)) {
          depth = sequence.builds ? depth + space : depth - space;
          next += 4;
          adjusts_first = false;
          continue;
        }
        depth = sequence.builds ? depth + word : depth - word;
        // saveregs: rbp and rbx take one byte, then r15, r14, … two. restoreregs: in reverse order.
        const Address done = next - sequence.start;
        const bool one_byte = sequence.builds ? done < (sequence.pushed_before ? 1u : 2u) : left <= 2;
        next += one_byte ? 1 : 2;
      }
      return depth;
    };
    if (sequence.builds && pc >= sequence.start && pc <= sequence.end) return depth_after(pc);
    if (!sequence.builds && pc > sequence.start && pc <= sequence.end) return depth_after(pc);
  }
  return std::nullopt;
}

}  // namespace luaspy
