#include "base/address_space.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace luaspy {
namespace {

// Removes the number at the front of `text`, in the given base.
bool parse_number(std::string_view& text, std::uint64_t& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool consume(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// proc(5): "start-end perms offset major:minor inode   path"
bool parse_line(std::string_view line, Mapping& mapping) {
  std::uint64_t major = 0, minor = 0;
  if (!parse_number(line, mapping.start, 16) || !consume(line, '-') || !parse_number(line, mapping.end, 16) ||
      !consume(line, ' '))
    return false;
  if (line.size() < 5 || mapping.start >= mapping.end) return false;
  mapping.readable = line[0] == 'r', mapping.writable = line[1] == 'w', mapping.executable = line[2] == 'x',
  mapping.shared = line[3] == 's';
  line.remove_prefix(5);
  if (!parse_number(line, mapping.offset, 16) || !consume(line, ' ') || !parse_number(line, major, 16) ||
      !consume(line, ':') || !parse_number(line, minor, 16) || !consume(line, ' ') ||
      !parse_number(line, mapping.inode, 10)) {
    return false;
  }
  mapping.device = major << 32 | minor;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view deleted = " (deleted)";
  mapping.deleted = line.ends_with(deleted);
  if (mapping.deleted) line.remove_suffix(deleted.size());
  mapping.path = line;
  return true;
}

}  // namespace

AddressSpace AddressSpace::parse(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (parse_line(text.substr(0, end), mapping)) mappings.push_back(std::move(mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::sort(mappings, {}, &Mapping::start);
  Address end = 0;
  // Overlapping lines are dropped.
  std::erase_if(mappings, [&](const Mapping& mapping) { return mapping.start < end || (end = mapping.end, false); });
  return AddressSpace(std::move(mappings));
}

// Names that are not paths of files: anonymous shared memory is "/dev/zero", System V's "/SYSV00000000",
// memfd_create(2)'s "/memfd:NAME". The kernel and its drivers have others: "anon_inode:[perf_event]",
// "/[aio]", "/dmabuf:", "/i915", all of one part and mostly deleted. Devices are in /dev.
bool Mapping::is_shared_data() const {
  if (!shared || inode == 0) return false;
  if (path.starts_with("[anon_shmem:")) return true;  // named by prctl(2)
  if (!path.starts_with('/')) return false;
  const auto is_one_of = [this](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [this](std::string_view name) { return path.starts_with(name); });
  };
  if (path.starts_with("/dev/")) return is_one_of({"/dev/shm/", "/dev/zero", "/dev/hugepages/"});
  if (path.find('/', 1) != path.npos || is_one_of({"/memfd:", "/SYSV", "/anon_hugepage"})) return true;
  return !deleted && path.find_first_of(":[") == path.npos;  // a file in the root
}

const Mapping* AddressSpace::find(Address address) const {
  const auto after = std::ranges::upper_bound(mappings_, address, {}, &Mapping::start);
  if (after == mappings_.begin()) return nullptr;
  const Mapping& mapping = *std::prev(after);
  return mapping.contains(address) ? &mapping : nullptr;
}

bool AddressSpace::is_writable(const AddressRange& range) const {
  if (range.start >= range.end) return false;
  for (Address from = range.start; from < range.end;) {
    const Mapping* const mapping = find(from);
    if (mapping == nullptr || !mapping->readable || !mapping->writable) return false;
    from = mapping->end;
  }
  return true;
}

std::vector<Mapping> AddressSpace::searched() const {
  std::vector<Mapping> searched;
  std::ranges::copy_if(mappings_, std::back_inserter(searched), &Mapping::may_hold_objects);
  std::stable_partition(searched.begin(), searched.end(), [](const Mapping& mapping) { return !mapping.shared; });
  return searched;
}

}  // namespace luaspy
