#include "luastate/luajit/luajit_heap_fields.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "luastate/tables.h"

namespace luaspy {
namespace {

// From the global_State to the end of the GG_State: some 6 KiB in the known releases.
constexpr std::size_t searched_size = 16384;
constexpr std::size_t least_size = 2048;

bool is_power_of_2(std::uint64_t number) { return std::has_single_bit(number); }

class HeapFieldsSearch {
 public:
  HeapFieldsSearch(const Memory& memory, const LuajitLayout& layout, Address G)
      : memory_(memory), layout_(layout), G_(G), bytes_(searched_size) {
    constexpr std::size_t piece = 512;
    std::size_t read = 0;
    while (read < bytes_.size() && memory.read(G + read, std::span(bytes_).subspan(read, piece))) read += piece;
    bytes_.resize(read);
  }

  std::optional<LuajitHeapFields> find() {
    if (layout_.is_20) fields_.trace_after_irbuf = 48;
    if (bytes_.size() < least_size || layout_.G_gc == no_field || layout_.G_gcroot == no_field || !find_strings())
      return std::nullopt;
    count_metamethods();
    find_buffer();
    find_jit_state();
    find_ctypes();
    find_size();
    return fields_;
  }

 private:
  template <typename T>
  T at(std::size_t offset) const {
    return load<T>(bytes_, offset);
  }
  Address ref_at(std::size_t offset) const { return load_ref(layout_, bytes_, offset); }

  bool has_type(Address object, std::uint8_t gct) const {
    return plausible_pointer(object, 4) && memory_.get<std::uint8_t>(object + layout_.L_gct) == gct;
  }

  // lj_str.c: a string's hash and the size of the table say in which chain it is. Only the first
  // string of a chain is sure to be in the right one: the table may be just being resized.
  bool is_string_table(Address table, std::uint32_t mask) const {
    constexpr std::uint32_t smallest = 256, largest = 1 << 26;  // LJ_MIN_STRTAB, LJ_MAX_STRTAB
    constexpr std::uint32_t most_chains = 1 << 16, enough = 16;
    const std::uint64_t size = std::uint64_t{mask} + 1;
    if (!plausible_pointer(table) || !is_power_of_2(size) || size < smallest || size > largest) return false;
    std::uint32_t index = 0, strings = 0;
    bool all_there = true;
    visit_elements(memory_, table, layout_.ref_size, std::min<std::uint64_t>(size, most_chains),
                   [&](std::span<const std::byte> anchor) {
                     if (const Address string = load_ref(layout_, anchor, 0) & ~Address{1}; string != 0) {
                       const auto hash = memory_.get<std::uint32_t>(string + layout_.str_len - sizeof(std::uint32_t));
                       all_there = has_type(string, luajit::gct_string) && hash && (*hash & mask) == index;
                       ++strings;
                     }
                     ++index;
                     return all_there && strings < enough;
                   });
    return all_there && strings > 0;
  }

  bool find_strings() {
    // lj_obj.h, GCstr: hash and len; from 2020-06 (ff34b48d) on sid is before them.
    fields_.aligned_strings = layout_.str_len == layout_.ref_size + 12;
    for (Offset offset = 0; offset < layout_.G_cur_L; offset = static_cast<Offset>(offset + 8)) {
      if (!is_string_table(at<Address>(offset), at<std::uint32_t>(offset + 8u))) continue;
      fields_.G_strtab = offset;
      return true;
    }
    return false;
  }

  void count_metamethods() {
    constexpr std::uint32_t most = 64;
    while (fields_.metamethods < most &&
           has_type(ref_at(layout_.G_gcroot + std::size_t{fields_.metamethods} * layout_.ref_size), luajit::gct_string))
      ++fields_.metamethods;
  }

  // lj_buf.c, lj_buf_shrink: what was used of it may have been more than it has now.
  bool is_buffer(Address used, Address end, Address begin) const {
    constexpr Address smallest = 32, largest = 0x7fffff00;  // LJ_MIN_SBUF, LJ_MAX_BUF
    return plausible_pointer(begin) && begin <= used && used - begin <= largest && begin < end &&
           end - begin >= smallest && end - begin <= largest && is_power_of_2(end - begin);
  }

  // lj_obj.h, SBuf: the end of what is used, the end, the beginning, L. That is the coroutine which used it last,
  // and may have been freed since. In 2.0: the beginning, how much is used, the size; it follows the GCState, and is
  // empty until it is needed.
  void find_buffer() {
    if (layout_.is_20) {
      constexpr Offset size_of_GCState = 56;
      fields_.G_tmpbuf = static_cast<Offset>(layout_.G_gc + size_of_GCState);
      fields_.tmpbuf_form = BufferForm::counts;
      return;
    }
    constexpr Address flags = 7;  // lj_buf.h, SBUF_MASK_FLAG
    for (const bool is_freed : {false, true}) {
      const auto may_be_thread = [&](Address L) {
        return is_freed ? plausible_pointer(L & ~flags) : is_thread_of(memory_, layout_, L & ~flags, G_);
      };
      for (std::size_t offset = layout_.G_gc; offset < layout_.G_cur_L; offset += 4) {
        const bool is_wide = offset % 8 == 0 &&
                             is_buffer(at<Address>(offset), at<Address>(offset + 8), at<Address>(offset + 16)) &&
                             may_be_thread(ref_at(offset + 24));
        const bool is_narrow = !layout_.gc64 &&
                               is_buffer(at<std::uint32_t>(offset), at<std::uint32_t>(offset + 4),
                                         at<std::uint32_t>(offset + 8)) &&
                               may_be_thread(at<std::uint32_t>(offset + 12));
        if (!is_wide && !is_narrow) continue;
        fields_.G_tmpbuf = static_cast<Offset>(offset);
        fields_.tmpbuf_form = is_wide ? BufferForm::pointers : BufferForm::references;
        return;
      }
    }
  }

  // lj_ir.c: the buffer is biased, its size is doubled from LJ_MIN_IRSZ on. lj_snap.c: those of
  // snapshots grow later.
  bool is_irbuf(std::size_t offset) const {
    constexpr std::uint32_t bias = 0x8000, smallest = 32, largest = 1 << 17, most_snapshots = 1 << 20;
    const auto buffer = [&](std::size_t address, std::size_t size) {
      const auto elements = at<std::uint32_t>(offset + size);
      const auto begin = at<Address>(offset + address);
      return elements == 0 ? begin == 0 : plausible_pointer(begin) && elements <= most_snapshots;
    };
    const auto top = at<std::uint32_t>(offset + jit_fields::irtoplim),
               bottom = at<std::uint32_t>(offset + jit_fields::irbotlim);
    return bottom < bias && top > bias && top - bottom >= smallest && top - bottom <= largest &&
           is_power_of_2(top - bottom) && plausible_pointer(at<Address>(offset) + bottom * 8u) &&
           buffer(jit_fields::snapbuf, jit_fields::sizesnap) &&
           buffer(jit_fields::snapmapbuf, jit_fields::sizesnapmap) &&
           buffer(fields_.trace_after_irbuf,
                  std::size_t{fields_.trace_after_irbuf} + jit_fields::sizetrace_after_trace) &&
           at<std::uint32_t>(offset + jit_fields::postproc) < 16;
  }

  // It is all zero until something is recorded.
  void find_jit_state() {
    const std::size_t from = (layout_.G_gcroot + 7u) & ~std::size_t{7};
    for (std::size_t offset = from; offset + 80 <= bytes_.size(); offset += 8) {
      if (!is_irbuf(offset)) continue;
      fields_.G_irbuf = static_cast<Offset>(offset);
      constexpr std::size_t k64_to_irbuf = 44;
      if (layout_.is_20) fields_.G_k64 = static_cast<Offset>(offset - k64_to_irbuf);
      for (std::size_t trace = from; trace + layout_.T_size <= offset; trace += 8) {
        if (at<Address>(trace + layout_.T_ir) != at<Address>(offset)) continue;
        fields_.G_curtrace = static_cast<Offset>(trace);
        return;
      }
      return;
    }
  }

  // It follows jit_base.
  void find_ctypes() {
    constexpr std::uint32_t most_types = 1 << 16;  // lj_ctype.h, CTID_MAX
    const Address cts = ref_at(layout_.G_jit_base + std::size_t{layout_.ref_size});
    std::array<std::byte, 32> head;
    if (!plausible_pointer(cts) || !memory_.read(cts, head)) return;
    const auto top = load<std::uint32_t>(head, cts_fields::top), size = load<std::uint32_t>(head, cts_fields::sizetab);
    if (load<Address>(head, cts_fields::g) != G_ || top > size || size > most_types ||
        !plausible_pointer(load<Address>(head, cts_fields::tab)))
      return;
    fields_.ctype_state = cts;
    fields_.cts_cbid = find_callbacks(memory_, layout_, cts, load<Address>(head, cts_fields::tab), top);
  }

  // lj_dispatch.c, lj_dispatch_init: the GG_State ends with an instruction for each fast function
  // that is written in assembler. Their opcodes follow those of bytecode, of which BC_FUNCCW is the
  // last.
  void find_size() {
    constexpr std::uint32_t least = 32;
    const std::uint32_t first = (at<std::uint32_t>(layout_.G_cur_L - 8u) & 0xff) + 2;
    for (std::size_t offset = layout_.G_gcroot; offset + 4 <= bytes_.size(); offset += 4) {
      std::uint32_t count = 0;
      while (offset + 4 * (count + 1) <= bytes_.size() && at<std::uint32_t>(offset + 4 * count) == first + count)
        ++count;
      if (count < least) continue;
      fields_.size = layout_.main_L_below + ((offset + 4 * count + 7) & ~std::size_t{7});
      return;
    }
  }

  const Memory& memory_;
  const LuajitLayout& layout_;
  Address G_;
  std::vector<std::byte> bytes_;
  LuajitHeapFields fields_;
};

}  // namespace

std::optional<LuajitHeapFields> find_heap_fields(const Memory& memory, const LuajitLayout& layout, Address G) {
  return HeapFieldsSearch(memory, layout, G).find();
}

}  // namespace luaspy
