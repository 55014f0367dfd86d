#include "attach/program_mark.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

#include "attach/live_memory.h"
#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

Address random_bytes_in(std::string_view auxv) {
  Elf64_auxv_t entry;
  for (; auxv.size() >= sizeof entry; auxv.remove_prefix(sizeof entry)) {
    std::memcpy(&entry, auxv.data(), sizeof entry);
    if (entry.a_type == AT_NULL) break;
    if (entry.a_type == AT_RANDOM) return entry.a_un.a_val;
  }
  return 0;
}

std::optional<ProgramMark> program_mark(pid_t pid) {
  const std::string auxv = system::read_file(fmt::format("/proc/{}/auxv", living_thread(pid))).value_or("");
  ProgramMark mark{random_bytes_in(auxv)};
  if (mark.at == 0 || !LiveMemory(pid).read(mark.at, mark.bytes)) return std::nullopt;
  return mark;
}

}  // namespace luaspy
