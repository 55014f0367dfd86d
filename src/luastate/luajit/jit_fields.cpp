#include "luastate/luajit/jit_fields.h"

#include <algorithm>
#include <array>
#include <vector>

namespace luaspy {
namespace {

constexpr std::size_t searched_jit_bytes = 12288;  // from the global_State on: jit_State ends before
constexpr Address user_space = address_limit;

// lj_jit.h, JIT_PARAMDEF, in its order: the defaults of the known releases, the last two of OpenResty's and of 2022 on.
struct Defaults {
  std::int32_t one, other;
};
constexpr std::array<Defaults, 15> defaults = {{{1000, 8000},
                                                {4000, 16000},
                                                {500, 500},
                                                {100, 100},
                                                {500, 500},
                                                {0, 3},  // minstitch
                                                {56, 56},
                                                {10, 10},
                                                {4, 4},
                                                {4, 4},
                                                {15, 15},
                                                {3, 3},
                                                {2, 2},
                                                {32, 64},
                                                {512, 40960}}};
constexpr std::size_t minstitch = 5;

class JitFieldsSearch {
 public:
  JitFieldsSearch(const Memory& memory, const LuajitLayout& layout, Address G)
      : memory_(memory), layout_(layout), G_(G), bytes_(searched_jit_bytes) {
    constexpr std::size_t piece = 512;
    std::size_t read = 0;
    while (read < bytes_.size() && memory.read(G + read, std::span(bytes_).subspan(read, piece))) read += piece;
    bytes_.resize(read);
  }

  std::optional<JitFields> find() {
    fields_.parameters = layout_.is_20 ? 14 : 15;
    if (layout_.G_gcroot == no_field || !find_parameters()) return std::nullopt;
    find_recording();
    return fields_;
  }

 private:
  template <typename T>
  T at(std::size_t offset) const {
    return offset + sizeof(T) <= bytes_.size() ? load<T>(bytes_, offset) : T{};
  }

  // A program may have set some, but not most.
  bool are_parameters(std::size_t offset) const {
    constexpr int enough = 7;
    constexpr std::int32_t most = 1 << 30;
    int same = 0;
    for (std::size_t i = 0; i < fields_.parameters; ++i) {
      const Defaults& known = defaults[layout_.is_20 && i >= minstitch ? i + 1 : i];
      const auto value = at<std::int32_t>(offset + 4 * i);
      if (value < 0 || value > most) return false;
      same += value == known.one || value == known.other ? 1 : 0;
    }
    return same >= enough;
  }

  bool are_penalties(std::size_t offset) const {
    const std::size_t size = jit_layout::penalty_size(layout_);
    for (std::size_t i = 0; i < jit_layout::penalty_slots; ++i) {
      const std::size_t entry = offset + i * size;
      const Address start = layout_.gc64 ? at<std::uint64_t>(entry) : at<std::uint32_t>(entry);
      const auto value = at<std::uint16_t>(entry + layout_.ref_size),
                 reason = at<std::uint16_t>(entry + layout_.ref_size + 2u);
      const bool is_free = start == 0 && value == 0 && reason == 0;
      if (!is_free && (!plausible_pointer(start, 4) || value < jit_layout::penalty_least || reason > 0xff))
        return false;
    }
    return at<std::uint32_t>(offset + jit_layout::penalty_slots * size) < jit_layout::penalty_slots;
  }

  // jit_State: param, exitstubgroup, penalty, penaltyslot.
  bool find_parameters() {
    const std::size_t pointers = 8 * jit_layout::exit_stub_groups;
    const std::size_t behind = 64 + pointers + 16 * jit_layout::penalty_slots + 4;
    for (std::size_t offset = layout_.G_gcroot; offset + behind <= bytes_.size(); offset += 4) {
      if (!are_parameters(offset)) continue;
      const std::size_t groups = (offset + 4u * fields_.parameters + 7) & ~std::size_t{7};
      bool are_groups = true;
      for (std::size_t i = 0; i < jit_layout::exit_stub_groups && are_groups; ++i) {
        const auto group = at<Address>(groups + 8 * i);
        are_groups = group == 0 || plausible_pointer(group, 1);
      }
      if (!are_groups || !are_penalties(groups + pointers)) continue;
      fields_.G_param = static_cast<Offset>(offset);
      fields_.G_penalty = static_cast<Offset>(groups + pointers);
      return true;
    }
    return false;
  }

  void find_recording() {
    const std::optional<LuajitHeapFields> heap = find_heap_fields(memory_, layout_, G_);
    if (!heap || heap->G_irbuf == no_field || heap->G_curtrace == no_field || heap->G_irbuf > fields_.G_param) return;
    // jit_State: cur, then in 2.1 curfinal; L, pc.
    const auto pc = static_cast<Offset>(heap->G_curtrace + layout_.T_size + (layout_.is_20 ? 8 : 16));
    if (!find_start(heap->G_curtrace)) return;
    fields_.G_curtrace = heap->G_curtrace;
    fields_.G_pc = pc;
    fields_.G_trace = static_cast<Offset>(heap->G_irbuf + heap->trace_after_irbuf);
    find_machine_code();
  }

  // jit_State: behind the caches that follow penaltyslot, startpc is that of the current trace. The one for loops
  // (scev) may have the same address, before it; patchpc, which follows, is set only for moments.
  bool find_start(Offset current) {
    const Address start = load_ref(layout_, bytes_, current + std::size_t{layout_.T_startpc});
    if (!plausible_pointer(start, 4)) return false;
    constexpr std::size_t reach = 2048;     // with LUAJIT_ENABLE_TABLE_BUMP, which has one more cache
    constexpr std::uint32_t most = 0x7000;  // a trace or exit; below the references of IR that scev has there
    const std::size_t from = fields_.G_penalty + jit_layout::penalty_slots * jit_layout::penalty_size(layout_);
    for (std::size_t offset = (from + 7) & ~std::size_t{7}; offset < from + reach && offset + 16 <= bytes_.size();
         offset += 8) {
      if (at<Address>(offset) != start || at<std::uint32_t>(offset + jit_layout::parent) >= most ||
          at<std::uint32_t>(offset + jit_layout::exitno) >= most)
        continue;
      fields_.G_startpc = static_cast<Offset>(offset);
    }
    return fields_.G_startpc != no_field;
  }

  // lj_mcode.c: an area is used from both ends.
  bool is_area(std::size_t offset) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    const auto area = at<Address>(offset), top = at<Address>(offset + jit_layout::mctop),
               bottom = at<Address>(offset + jit_layout::mcbot);
    const auto size = at<std::uint64_t>(offset + jit_layout::szmcarea),
               all = at<std::uint64_t>(offset + jit_layout::szallmcarea);
    return plausible_pointer(area, smallest_page) && size != 0 && size <= all && all < most &&
           size % smallest_page == 0 && all % smallest_page == 0 && bottom >= area && bottom <= top &&
           top <= area + size;
  }

  // jit_State: parent, exitno, in some releases exitcode; patchpc, patchins, mcprot, mcarea … szallmcarea; from 2026 on
  // mcmin and mcmax; errinfo.
  void find_machine_code() {
    for (const std::size_t distance : {std::size_t{32}, std::size_t{40}}) {
      const std::size_t area = fields_.G_startpc + distance;
      if (!is_area(area)) continue;
      fields_.G_mcarea = static_cast<Offset>(area);
      std::size_t info = area + jit_layout::behind;
      const auto is_address = [&](std::size_t offset) {
        return at<std::uint64_t>(offset) != 0 && at<std::uint64_t>(offset) <= user_space;
      };
      if (is_address(info) && is_address(info + 8)) info += 16;
      fields_.G_errinfo = static_cast<Offset>(info);
      return;
    }
    // Nothing was ever assembled, so all of it is zero up to errinfo.
    constexpr std::size_t first = 32 + jit_layout::behind, last = 40 + jit_layout::behind + 16;
    for (std::size_t offset = fields_.G_startpc + 32u; offset <= fields_.G_startpc + last; offset += 8) {
      if (at<std::uint64_t>(offset) == 0) continue;
      if (offset >= fields_.G_startpc + first) fields_.G_errinfo = static_cast<Offset>(offset);
      return;
    }
  }

  const Memory& memory_;
  const LuajitLayout& layout_;
  Address G_;
  std::vector<std::byte> bytes_;
  JitFields fields_;
};

}  // namespace

std::optional<JitFields> find_jit_fields(const Memory& memory, const LuajitLayout& layout, Address G) {
  return JitFieldsSearch(memory, layout, G).find();
}

}  // namespace luaspy
