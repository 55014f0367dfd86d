#include "luastate/puc/execute_code.h"

#include <algorithm>
#include <cstdint>

namespace luaspy {
namespace {

// Compilers name parts of a function like this: luaV_execute.cold, luaV_execute.lto_priv.0,
// luaV_execute.part.3.
std::string_view without_suffix(std::string_view name) { return name.substr(0, name.find('.')); }

// If two Luas are linked into one program, the symbols of one have a prefix: mud_lua_pcallk.
std::string_view without_prefix(std::string_view name) {
  const std::size_t at = name.rfind("_lua");
  return at != name.npos ? name.substr(at + 1) : name;
}

}  // namespace

// ldo.c, lvm.c, lapi.c: functions that carry a call and do no work of their own that a profile
// would name.
bool is_carrier(std::string_view name) {
  static constexpr std::string_view carriers[] = {
      "luaV_execute",     "luaV_finishOp",   "luaD_call",        "luaD_callnoyield", "luaD_rawrunprotected",
      "luaD_pcall",       "luaD_precall",    "luaD_pretailcall", "luaD_poscall",     "luaD_closeprotected",
      "luaD_hook",        "luaD_hookcall",   "luaD_callhook",    "luaD_throw",       "luaD_tryfuncTM",
      "luaG_traceexec",   "luaT_callTMres",  "luaT_callTM",      "luaT_trybinTM",    "lua_call",
      "lua_callk",        "lua_pcall",       "lua_pcallk",       "lua_cpcall",       "lua_resume",
      "lua_yieldk",       "f_call",          "f_Ccall",          "f_parser",         "ccall",
      "precallC",         "resume",          "unroll",           "resume_execute",   "closepaux",
      "callTMres",        "call_binTM",      "call_orderTM",     "dothecall",        "GCTM",
      "prepcallclosemth", "callclosemethod", "luaF_close",       "finishCcall",      "finishpcallk",
      "traceexec",        "callhook"};
  name = without_prefix(without_suffix(name));
  return std::ranges::find(carriers, name) != std::end(carriers);
}

bool is_execute(std::string_view name) { return without_prefix(without_suffix(name)) == "luaV_execute"; }

// lgc.c
bool is_collector(std::string_view name) {
  name = without_prefix(without_suffix(name));
  return name == "luaC_step" || name == "luaC_forcestep" || name == "luaC_fullgc" || name == "singlestep";
}

int interpreter_score(std::span<const std::byte> code) {
  constexpr std::size_t smallest = 1500, largest = 1 << 17;
  if (code.size() < smallest || code.size() > largest) return 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(code[i]); };
  int jumps = 0, masks = 0, shifts = 0;
  for (std::size_t i = 0; i + 3 <= code.size(); ++i) {
    if (byte(i) == 0xff && (byte(i + 1) & 0xf8) == 0xe0) ++jumps;  // jmp *reg
    if (byte(i) == 0xff && (byte(i + 1) & 0x3f) == 0x24) ++jumps;  // jmp *table(,reg,8)
    if (byte(i) == 0x83 && (byte(i + 1) & 0xf8) == 0xe0 && (byte(i + 2) == 0x3f || byte(i + 2) == 0x7f))
      ++masks;  // and reg, imm8
    // shr reg, imm8, with the positions of A, C, B in 5.1 to 5.3 (6, 14, 23) and of A, k, B, C from
    // 5.4 on (7, 15, 16, 24)
    if (byte(i) == 0xc1 && (byte(i + 1) & 0xf8) == 0xe8) {
      const unsigned count = byte(i + 2);
      shifts += count == 6 || count == 14 || count == 23 || count == 7 || count == 15 || count == 16 || count == 24;
    }
  }
  constexpr int enough_shifts = 20;
  if (jumps == 0 || masks == 0 || shifts < enough_shifts) return 0;
  return shifts + 4 * std::min(masks, 100) + static_cast<int>(code.size() / 256);
}

}  // namespace luaspy
