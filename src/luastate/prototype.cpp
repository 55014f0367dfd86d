#include "luastate/prototype.h"

#include <algorithm>

namespace luaspy {

// LuaJIT changes some of its bytecode (lj_trace.c, lj_dispatch.c, and vm_x64.dasc for ITERN and
// ISNEXT): calls of iterators, returns, jumps, loops and headers. These are the opcodes after those
// that work on tables. The first of them, CALLM, is 62 in 2.0, 66 in 2.1, and 73
// in later releases (lj_bc.h).
std::uint32_t Prototype::identity() const {
  constexpr std::uint32_t never_changed = 60;
  std::uint64_t hash = fields_hash ^ hash_basis;
  mix(hash, static_cast<std::uint64_t>(last_line_defined - line_defined));
  mix(hash, static_cast<std::uint64_t>(parameters));
  mix(hash, code.size());
  for (const std::uint32_t instruction : code) {
    if (!is_luajit(bytecode) || (instruction & 0xff) < never_changed) mix(hash, instruction);
  }
  for (const std::optional<std::string>& constant : constants) {
    if (constant) mix(hash, *constant);
  }
  for (const std::string& name : upvalues) mix(hash, name);
  for (const LocalVariable& local : locals) mix(hash, local.name);
  hash ^= hash >> 32;
  const auto identity = static_cast<std::uint32_t>(hash);
  return identity != 0 ? identity : 1;
}

std::uint64_t Prototype::fingerprint() const {
  std::uint64_t hash = identity();
  mix(hash, source);
  for (const int number : {line_defined, last_line_defined}) mix(hash, static_cast<std::uint64_t>(number));
  for (const int each : lines) mix(hash, static_cast<std::uint64_t>(each));
  for (const LocalVariable& local : locals) {
    mix(hash, static_cast<std::uint64_t>(local.start_pc));
    mix(hash, static_cast<std::uint64_t>(local.end_pc));
  }
  for (std::size_t i = 0; i < constants.size(); ++i) mix(hash, constants[i] ? i : 0);
  return hash;
}

std::size_t Prototype::size() const {
  std::size_t size = sizeof(Prototype) + source.size() + (code.size() + lines.size()) * sizeof(int) +
                     constants.size() * sizeof(constants[0]) + upvalues.size() * sizeof(std::string) +
                     locals.size() * sizeof(LocalVariable) + children.size() * sizeof(Address);
  for (const std::optional<std::string>& constant : constants) size += constant ? constant->size() : 0;
  for (const LocalVariable& local : locals) size += local.name.size();
  return size;
}

int Prototype::line(int pc) const {
  if (lines.empty()) return line_defined;
  return lines[static_cast<std::size_t>(std::clamp(pc, 0, static_cast<int>(lines.size()) - 1))];
}

}  // namespace luaspy
