#include "attach/page_map.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attach/proc_files.h"
#include "system/page_scan.h"

namespace luaspy {

PageMap::PageMap(pid_t pid, Ask ask)
    : page_(system::page_size()),
      file_(system::open_file(fmt::format("/proc/{}/pagemap", living_thread(pid)), O_RDONLY)) {
  system::PageRun run;
  std::size_t count = 0;
  Address next = 0;
  can_scan_ = ask == Ask::scan && file_ &&
              !system::scan_pages(file_, {lowest_address, lowest_address + page_}, {&run, 1}, count, next);
}

bool PageMap::visit_contents(const AddressRange& range, PageWork& work,
                             const std::function<void(const AddressRange& run)>& visit_run) const {
  if (can_scan_) return scan(range, work, visit_run);
  if (range.size() / page_ > work.words || system::Clock::now() >= work.until) return range.size() == 0;
  work.words -= range.size() / page_;
  AddressRange run;
  const bool all = visit(range, [&](Address first, std::span<const std::uint64_t> entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Address page = first + i * page_;
      if ((entries[i] & (present | swapped)) == 0) continue;
      if (page != run.end) {
        if (run.size() != 0) visit_run(run);
        run.start = page;
      }
      run.end = page + page_;
    }
  });
  if (run.size() != 0) visit_run(run);
  return all;
}

// One call looks at so many pages at most that it takes some 20 ms, if all of them exist.
bool PageMap::scan(const AddressRange& range, const PageWork& work,
                   const std::function<void(const AddressRange& run)>& visit_run) const {
  constexpr Address at_once = Address{1} << 34;
  constexpr std::size_t most_runs = 4096;
  std::vector<system::PageRun> runs(most_runs);
  AddressRange last;
  for (Address at = range.start; at < range.end;) {
    if (system::Clock::now() >= work.until) return false;
    std::size_t count = 0;
    Address next = 0;
    const AddressRange part{at, std::min(range.end, at + at_once)};
    if (system::scan_pages(file_, part, runs, count, next) || next <= at) return false;
    for (const system::PageRun& run : std::span(runs).first(count)) {
      if (run.start == last.end) {
        last.end = run.end;
        continue;
      }
      if (last.size() != 0) visit_run(last);
      last = {run.start, run.end};
    }
    at = std::max(next, last.end);
  }
  if (last.size() != 0) visit_run(last);
  return true;
}

bool PageMap::visit(const AddressRange& range,
                    const std::function<void(Address first, std::span<const std::uint64_t> entries)>& visit) const {
  constexpr std::uint64_t at_once = 1 << 16;  // pages
  if (!file_) return range.size() == 0;
  std::vector<std::uint64_t> entries(std::min(at_once, range.size() / page_));
  for (Address at = range.start; at < range.end;) {
    const auto wanted = std::span(entries).first(std::min((range.end - at) / page_, at_once));
    bool is_gone = false;
    const std::size_t bytes = system::read_some_at(file_, at / page_ * sizeof(std::uint64_t),
                                                   std::as_writable_bytes(wanted), is_gone);
    const std::size_t pages = bytes / sizeof(std::uint64_t);
    if (pages == 0) return false;
    visit(at, wanted.first(pages));
    at += pages * page_;
  }
  return true;
}

}  // namespace luaspy
