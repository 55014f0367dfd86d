#include "attach/resident_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "attach/proc_files.h"
#include "attach/smaps.h"

namespace luaspy {
namespace {

// A shadow of AddressSanitizer, ThreadSanitizer or MemorySanitizer has terabytes, in few mappings. No
// memory that programs use is so large, reserved without swap space and kept out of core files at the
// same time (compiler-rt, ReserveShadowMemoryRange: MAP_NORESERVE, MADV_DONTDUMP).
constexpr Address least_shadow = Address{1} << 36;

bool may_be_shadow(const Mapping& mapping) {
  return mapping.is_anonymous() && mapping.readable && mapping.writable && mapping.end - mapping.start >= least_shadow;
}

std::vector<AddressRange> find_shadows(pid_t pid, const AddressSpace& space) {
  std::vector<AddressRange> shadows;
  if (std::ranges::none_of(space.mappings(), may_be_shadow)) return shadows;
  const std::string smaps = system::read_file(fmt::format("/proc/{}/smaps", living_thread(pid))).value_or("");
  for (const ResidentMapping& one : parse_smaps(smaps).mappings) {
    if (may_be_shadow(one.mapping) && one.not_reserved && one.not_dumped)
      shadows.push_back({one.mapping.start, one.mapping.end});
  }
  sort_and_join(shadows);
  return shadows;
}

}  // namespace

ResidentPages::ResidentPages(pid_t pid, const AddressSpace& space, PageMap::Ask ask)
    : map_(pid, ask), shadows_(find_shadows(pid, space)) {}

ResidentPages::Found ResidentPages::find(const AddressSpace& space, const std::function<bool(const Mapping&)>& wanted,
                                         PageWork work) const {
  std::vector<AddressRange> ask;
  for (const Mapping& mapping : space.mappings()) {
    if (wanted(mapping)) ask.push_back({mapping.start, mapping.end});
  }
  ask = without(ask, shadows_);
  std::ranges::stable_sort(ask, {}, &AddressRange::size);
  Found found;
  for (const AddressRange& range : ask) {
    constexpr Address small = Address{1} << 30;
    const std::size_t before = found.ranges.size();
    if (map_.visit_contents(range, work, [&](const AddressRange& run) { found.ranges.push_back(run); })) continue;
    found.ranges.resize(before);
    if (!map_.exists() && range.size() <= small) found.ranges.push_back(range);
    else found.unknown_bytes += range.size();
  }
  sort_and_join(found.ranges);
  return found;
}

AddressSpace contents_of(pid_t pid, const AddressSpace& space) {
  const ResidentPages::Found found = ResidentPages(pid, space).find(space, [](const Mapping& mapping) {
    return mapping.may_hold_objects();
  });
  std::vector<Mapping> parts;
  auto mapping = space.mappings().begin();
  for (const AddressRange& range : found.ranges) {
    for (Address at = range.start; at < range.end; at = parts.back().end) {
      while (mapping->end <= at) ++mapping;
      Mapping& part = parts.emplace_back(*mapping);
      part.offset += at - part.start;
      part.start = at, part.end = std::min(range.end, mapping->end);
    }
  }
  return AddressSpace(std::move(parts));
}

}  // namespace luaspy
