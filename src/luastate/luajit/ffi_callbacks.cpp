#include "luastate/luajit/ffi_callbacks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "luastate/tables.h"

namespace luaspy {
namespace {

// lj_tab.h, hashrot; lj_ctype.c, ct_hashtype
std::uint8_t bucket_of(std::uint32_t info, std::uint32_t size) {
  std::uint32_t lo = info ^ size, hi = std::rotl(size, 14);
  lo -= hi;
  hi = std::rotl(hi, 5) ^ lo;
  return static_cast<std::uint8_t>((hi - std::rotl(lo, 13)) % cts_fields::hash_size);
}

// The bucket of each type: of one with a name it is that of the name's address (lj_ctype.c, ct_hashname).
std::vector<std::uint8_t> buckets_of(const Memory& memory, const LuajitLayout& layout, Address types,
                                     std::uint32_t top) {
  constexpr std::uint32_t bias = std::uint32_t{0} - 0x04c11db7;  // lj_def.h, HASH_BIAS
  const std::size_t name_at = layout.gc64 ? 16 : 12;
  std::vector<std::uint8_t> buckets;
  visit_elements(memory, types, ctype_size(layout), top, [&](std::span<const std::byte> type) {
    const auto name = static_cast<std::uint32_t>(load_ref(layout, type, name_at));
    buckets.push_back(name != 0 ? bucket_of(name, name + bias)
                                : bucket_of(load<std::uint32_t>(type, 0), load<std::uint32_t>(type, 4)));
    return true;
  });
  return buckets;
}

// lj_ccallback.c, callback_slot_new: the table grows up to CALLBACK_MAX_SLOT. It is made together with the callbacks'
// machine code, which is a page or more.
bool may_be_callbacks(const Memory& memory, Address cbid) {
  constexpr std::uint32_t most = 1 << 14, code_alignment = 4096;  // LJ_PAGESIZE
  constexpr std::size_t code_before = 8, topid = std::size_t{cts_fields::sizeid} + 4;
  std::array<std::byte, code_before + topid + 4> bytes;
  if (!memory.read(cbid - code_before, bytes)) return false;
  const auto code = load<Address>(bytes, 0), table = load<Address>(bytes, code_before);
  const auto size = load<std::uint32_t>(bytes, code_before + cts_fields::sizeid),
             first_free = load<std::uint32_t>(bytes, code_before + topid);
  if (size == 0) return table == 0;
  return plausible_pointer(table) && plausible_pointer(code, code_alignment) && size <= most && first_free <= most;
}

}  // namespace

Offset find_callbacks(const Memory& memory, const LuajitLayout& layout, Address cts, Address types, std::uint32_t top) {
  constexpr Offset least = 56, end = 1024;
  const std::vector<std::uint8_t> buckets = buckets_of(memory, layout, types, top);
  Offset best = no_field;
  std::uint32_t most = 0;
  for (Offset cbid = least; cbid < end; cbid = static_cast<Offset>(cbid + 8)) {
    std::array<std::uint16_t, cts_fields::hash_size> hashes;
    if (!may_be_callbacks(memory, cts + cbid) ||
        !memory.read(cts + cbid + cts_fields::hash, std::as_writable_bytes(std::span(hashes))))
      continue;
    std::uint32_t right = 0, wrong = 0;
    for (std::uint32_t i = 0; i < hashes.size(); ++i) {
      if (hashes[i] == 0) continue;
      ++(hashes[i] < buckets.size() && buckets[hashes[i]] == i ? right : wrong);
    }
    if (right > most && right > wrong) best = cbid, most = right;
  }
  return best;
}

}  // namespace luaspy
