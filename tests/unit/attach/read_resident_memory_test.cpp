#include "attach/read_resident_memory.h"

#include <catch2/catch.hpp>

#include "attach/smaps.h"

namespace luaspy::read_resident_memory_test {
namespace {

constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62,
                        of_file = std::uint64_t{1} << 61, exclusive = std::uint64_t{1} << 56;

// The resident pages of a mapping that begins at 0x10000 and has a page for each word. `resident`: how many
// pages smaps counts.
std::vector<AddressRange> pages_of(std::initializer_list<std::uint64_t> words, std::uint64_t resident,
                                   std::uint64_t page_bytes = 4096) {
  ResidentMemory memory;
  memory.page_bytes = page_bytes;
  ResidentMapping mapping;
  mapping.mapping.start = 0x10000, mapping.mapping.end = 0x10000 + words.size() * page_bytes;
  mapping.rss = resident * page_bytes;
  std::vector<PageEntry> entries;
  for (const std::uint64_t word : words) entries.push_back({0x10000 + entries.size() * page_bytes, word});
  add_pages(memory, mapping, entries);
  CHECK(mapping.pages_known);
  return memory.pages;
}

}  // namespace

TEST_CASE("smaps is parsed, and what does not fit is passed over") {
  const ResidentMemory memory = parse_smaps(
      "Rss: 4 kB\n"
      "55d0c0a00000-55d0c0a07000 rw-p 00002000 fe:01 1234                       /usr/bin/lua5.4\n"
      "Size:                 28 kB\n"
      "KernelPageSize:        4 kB\n"
      "Rss:                  12 kB\n"
      "Pss:                   7 kB\n"
      "Shared_Clean:          1 kB\n"
      "Shared_Dirty:          2 kB\n"
      "Private_Clean:         3 kB\n"
      "Private_Dirty:         4 kB\n"
      "Anonymous:             8 kB\n"
      "Swap:                 16 kB\n"
      "VmFlags: rd wr mr mw me ac nr dd sd \n"
      "55d0c0a06000-55d0c0a08000 rw-p 00000000 00:00 0 \n"
      "Rss:                   8 kB\n"
      "a nonsense line-with a dash\n"
      "Rss:                   8 kB\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "Rss: 18446744073709551615 kB\n"
      "Swap: -1 kB\n"
      "Pss:\n");
  REQUIRE(memory.mappings.size() == 2);
  const ResidentMapping& lua = memory.mappings[0];
  CHECK(lua.mapping.path == "/usr/bin/lua5.4");
  CHECK(lua.rss == 12 << 10);
  CHECK(lua.pss == 7 << 10);
  CHECK(lua.swap == 16 << 10);
  CHECK(lua.anonymous == 8 << 10);
  CHECK(lua.shared_clean == 1 << 10);
  CHECK(lua.shared_dirty == 2 << 10);
  CHECK(lua.private_clean == 3 << 10);
  CHECK(lua.private_dirty == 4 << 10);
  CHECK(lua.not_reserved);
  CHECK(lua.not_dumped);
  CHECK_FALSE(memory.mappings[1].not_dumped);
  CHECK_FALSE(lua.pages_known);
  CHECK(memory.mappings[1].rss == 0x21000);  // not more than its size
  CHECK(memory.rss() == (12 << 10) + 0x21000);
  CHECK(memory.swap() == 16 << 10);
  CHECK(parse_smaps("").mappings.empty());
}

TEST_CASE("resident pages are joined; pages in swap are none") {
  CHECK(pages_of({present | exclusive, present | of_file, 0, swapped, present, 0}, 3) ==
        std::vector<AddressRange>{{0x10000, 0x12000}, {0x14000, 0x15000}});
}

TEST_CASE("a word of the kernel's stands for a page of its size") {
  CHECK(pages_of({present | exclusive, present | of_file, 0, swapped, present, 0}, 3, 0x4000) ==
        std::vector<AddressRange>{{0x10000, 0x18000}, {0x20000, 0x24000}});
}

TEST_CASE("pages of zeros that smaps does not count are left out") {
  CHECK(pages_of({present, present | exclusive, present, present | of_file, present}, 3) ==
        std::vector<AddressRange>{{0x11000, 0x12000}, {0x13000, 0x15000}});
}

TEST_CASE("there are never more pages than smaps counts") {
  CHECK(pages_of({present | exclusive, present | exclusive, present | exclusive, present | exclusive}, 2) ==
        std::vector<AddressRange>{{0x10000, 0x12000}});
}

}  // namespace luaspy::read_resident_memory_test
