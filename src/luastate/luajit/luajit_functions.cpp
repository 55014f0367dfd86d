#include "luastate/luajit/luajit_functions.h"

#include <array>

#include "base/word_hash.h"

namespace luaspy {

Address c_function_key(const LuajitLayout& layout, Address G, Address pc, Address f) {
  const Address common = G + layout.G_cur_L - 8;  // bc_cfunc_int and bc_cfunc_ext (lj_obj.h, global_State)
  return pc == common || pc == common + 4 ? f : pc;
}

std::optional<LuajitFunction> read_function(const Memory& memory, const LuajitLayout& layout, Address G,
                                            Address function) {
  std::array<std::byte, 64> object;
  const auto fields = std::span(object).first(layout.fn_f + 8u);
  if (!plausible_pointer(function) || !memory.read(function, fields) ||
      load<std::uint8_t>(fields, layout.fn_gct) != luajit::gct_function)
    return std::nullopt;
  LuajitFunction read;
  const Address pc = load_ref(layout, fields, layout.fn_pc);
  read.env = load_ref(layout, fields, layout.fn_env);
  if (load<std::uint8_t>(fields, layout.fn_ffid) == 0) {
    read.key = pc;
    read.proto = pc - layout.pt_size;
  } else {
    read.key = c_function_key(layout, G, pc, load<Address>(fields, layout.fn_f));
  }
  return read;
}

// The collector changes marked and gclist, the JIT compiler trace and flags.
std::uint64_t mark_of(const LuajitLayout& layout, std::span<const std::byte> proto) {
  if (load<std::uint8_t>(proto, layout.pt_gct) != luajit::gct_proto) return 0;
  std::uint64_t hash = hash_basis;
  for (const Offset byte : {layout.pt_numparams, layout.pt_framesize, layout.pt_sizeuv})
    mix(hash, load<std::uint8_t>(proto, byte));
  for (const Offset size : {layout.pt_sizebc, layout.pt_sizekgc, layout.pt_sizekn, layout.pt_sizept,
                            layout.pt_firstline, layout.pt_numline}) {
    mix(hash, load<std::uint32_t>(proto, size));
  }
  for (const Offset reference :
       {layout.pt_k, layout.pt_chunkname, layout.pt_lineinfo, layout.pt_uvinfo, layout.pt_varinfo})
    mix(hash, load_ref(layout, proto, reference));
  return hash | 1;
}

bool read_proto_of(const Memory& memory, const LuajitLayout& layout, LuaCall& call) {
  std::array<std::byte, 128> bytes;
  const auto fields = std::span(bytes).first(layout.pt_size);
  if (!plausible_pointer(call.proto) || !memory.read(call.proto, fields)) return false;
  call.mark = mark_of(layout, fields);
  call.code = call.proto + layout.pt_size;
  call.size_code = load<std::uint32_t>(fields, layout.pt_sizebc);
  constexpr std::uint32_t most_instructions = 1 << 26;  // LJ_MAX_BCINS (lj_def.h)
  constexpr std::uint8_t vararg = 2;                    // PROTO_VARARG
  const bool is_vararg = (load<std::uint8_t>(fields, layout.pt_flags) & vararg) != 0;
  call.kind = is_vararg ? LuaCall::Kind::lua_vararg : LuaCall::Kind::lua;
  return call.mark != 0 && call.size_code > 0 && call.size_code < most_instructions;
}

Address proto_of(const Memory& memory, const LuajitLayout& layout, Address pc) {
  constexpr std::uint32_t most = 1 << 16, chunk = 256;
  int tries = 1 << 12;  // for what looks like a header
  if (!plausible_pointer(pc, 4)) return 0;
  std::array<std::uint32_t, chunk> instructions;
  for (std::uint32_t back = 0; back < most; back += chunk) {
    const Address from = pc - 4 * Address{back + chunk - 1};
    if (!memory.read(from, std::as_writable_bytes(std::span(instructions)))) {
      // The memory may begin in between: at a page.
      const Address last = from + 4 * Address{chunk - 1};
      const std::size_t missing = page_start(last) > from ? (page_start(last) - from) / 4 : 0;
      instructions.fill(0);
      if (missing == 0 ||
          !memory.read(page_start(last), std::as_writable_bytes(std::span(instructions).subspan(missing))))
        return 0;
    }
    for (std::size_t i = chunk; i-- > 0;) {
      constexpr std::uint32_t headers = 8;  // lj_bc.h: BC_FUNCF to BC_FUNCCW
      const std::uint32_t opcode = instructions[i] & 0xff;
      if (opcode - layout.first_header >= headers) continue;
      if (--tries < 0) return 0;
      const Address proto = from + 4 * i - layout.pt_size;
      const std::optional<std::uint32_t> size = memory.get<std::uint32_t>(proto + layout.pt_sizebc);
      if (memory.get<std::uint8_t>(proto + layout.pt_gct) == luajit::gct_proto && size &&
          pc < from + 4 * i + 4 * Address{*size})
        return proto;
    }
  }
  return 0;
}

}  // namespace luaspy
