#include "attach/smaps.h"

#include <algorithm>

#include "base/words.h"

namespace luaspy {
namespace {

// "Rss:                  12 kB". fs/proc/task_mmu.c, __show_smap().
void parse_field(std::string_view line, ResidentMapping& mapping) {
  const std::string_view name = next_word(line);
  if (name == "VmFlags:") {
    for (std::string_view flag = next_word(line); !flag.empty(); flag = next_word(line))
      mapping.not_reserved |= flag == "nr", mapping.not_dumped |= flag == "dd";
    return;
  }
  constexpr std::uint64_t unit = 1024, most = std::uint64_t{1} << 48;
  const auto bytes = std::min(number<std::uint64_t>(next_word(line)), most / unit) * unit;
  if (name == "Rss:") mapping.rss = std::min(bytes, mapping.mapping.end - mapping.mapping.start);
  else if (name == "Pss:") mapping.pss = bytes;
  else if (name == "Swap:") mapping.swap = bytes;
  else if (name == "Anonymous:") mapping.anonymous = bytes;
  else if (name == "Shared_Clean:") mapping.shared_clean = bytes;
  else if (name == "Shared_Dirty:") mapping.shared_dirty = bytes;
  else if (name == "Private_Clean:") mapping.private_clean = bytes;
  else if (name == "Private_Dirty:") mapping.private_dirty = bytes;
}

// Names of fields begin with a capital letter, addresses are in lower case.
bool is_header(std::string_view line) {
  return !line.empty() && ((line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f'));
}

}  // namespace

ResidentMemory parse_smaps(std::string_view text) {
  ResidentMemory memory;
  bool skips = true;  // the fields of a mapping that was not taken
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (!is_header(line)) {
      if (!skips) parse_field(line, memory.mappings.back());
      continue;
    }
    const AddressSpace space = AddressSpace::parse(line);
    skips = space.mappings().empty() ||
            (!memory.mappings.empty() && space.mappings()[0].start < memory.mappings.back().mapping.end);
    if (!skips) memory.mappings.push_back({space.mappings()[0]});
  }
  return memory;
}

}  // namespace luaspy
