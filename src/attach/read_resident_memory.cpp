#include "attach/read_resident_memory.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "attach/page_map.h"
#include "attach/process.h"
#include "attach/smaps.h"
#include "system/calls.h"

namespace luaspy {
namespace {

// Where /proc/PID/pagemap is missing, or a mapping is too big, the pages are not known.
void read_pages(const PageMap& map, PageWork& work, ResidentMemory& memory, ResidentMapping& mapping) {
  const AddressRange all{mapping.mapping.start, mapping.mapping.end};
  if (mapping.rss == 0 || mapping.rss == all.size()) {
    mapping.pages_known = true;
    if (mapping.rss != 0) memory.pages.push_back(all);
    return;
  }
  std::vector<PageEntry> entries;
  bool whole = true;
  whole &= map.visit_contents(all, work, [&](const AddressRange& run) {
    whole &= map.visit(run, [&](Address first, std::span<const std::uint64_t> some) {
      for (std::size_t i = 0; i < some.size(); ++i) entries.push_back({first + i * memory.page_bytes, some[i]});
    });
  });
  if (whole) add_pages(memory, mapping, entries);
}

}  // namespace

void add_pages(ResidentMemory& memory, ResidentMapping& mapping, std::span<const PageEntry> entries) {
  const auto is_present = [](const PageEntry& entry) { return (entry.word & PageMap::present) != 0; };
  const auto is_doubtful = [](const PageEntry& entry) {
    return (entry.word & (PageMap::of_file | PageMap::exclusive)) == 0;
  };
  const std::uint64_t limit = mapping.rss / memory.page_bytes;
  const auto shown = static_cast<std::uint64_t>(std::ranges::count_if(entries, is_present));
  std::uint64_t too_many = shown - std::min(shown, limit), left = limit;
  for (std::size_t i = 0; i < entries.size() && left != 0; ++i) {
    if (!is_present(entries[i])) continue;
    if (too_many != 0 && is_doubtful(entries[i])) {
      --too_many;
      continue;
    }
    --left;
    const Address page = entries[i].page;
    const AddressRange range{page, page + memory.page_bytes};
    if (!memory.pages.empty() && memory.pages.back().end == page) memory.pages.back().end = range.end;
    else memory.pages.push_back(range);
  }
  mapping.pages_known = true;
}

Result<ResidentMemory> read_resident_memory(pid_t pid, system::Clock::time_point until) {
  const pid_t living = living_thread(pid);
  const PageMap map(pid);  // first, in case that the process executes another program now
  ResidentMemory memory = parse_smaps(system::read_file(fmt::format("/proc/{}/smaps", living)).value_or(""));
  if (memory.mappings.empty()) {
    const Result<Process> process = Process::open(pid);
    if (!process) return process.error();
    if (!system::open_file("/proc/self/smaps", O_RDONLY))
      return Error{Cause::unsupported,
                   "This kernel does not show which memory is resident: it has no /proc/PID/smaps "
                   "(CONFIG_PROC_PAGE_MONITOR)."};
    return Error{Cause::target_ended, fmt::format("Process {} ended while luaspy read its mappings.", pid)};
  }
  memory.page_bytes = map.page_bytes();
  PageWork work;
  work.until = until;
  for (ResidentMapping& mapping : memory.mappings) read_pages(map, work, memory, mapping);
  sort_and_join(memory.pages);
  return memory;
}

}  // namespace luaspy
