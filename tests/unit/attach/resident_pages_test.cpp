#include "attach/resident_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "attach/process.h"

namespace luaspy::resident_pages_test {
namespace {

constexpr Address page = 4096;

// A mapping of this process, of which only some pages are written.
class Sparse {
 public:
  explicit Sparse(std::size_t size, int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
      : size_(size), start_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0)) {
    REQUIRE(start_ != MAP_FAILED);
    ::madvise(start_, size, MADV_NOHUGEPAGE);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { ::munmap(start_, size_); }
  Address start() const { return reinterpret_cast<Address>(start_); }
  AddressRange range() const { return {start(), start() + size_}; }
  void write(Address offset) { static_cast<volatile char*>(start_)[offset] = 1; }
  void keep_out_of_cores() { REQUIRE(::madvise(start_, size_, MADV_DONTDUMP) == 0); }
  AddressRange run(Address first, Address pages) const {
    return {start() + first * page, start() + (first + pages) * page};
  }

 private:
  std::size_t size_;
  void* start_;
};

AddressSpace own_space() { return AddressSpace::parse(system::read_file("/proc/self/maps").value_or("")); }

std::vector<AddressRange> runs_of(const PageMap& map, const AddressRange& range, PageWork work = {}) {
  std::vector<AddressRange> runs;
  if (!map.visit_contents(range, work, [&](const AddressRange& run) { runs.push_back(run); })) runs.clear();
  return runs;
}

}  // namespace

TEST_CASE("pages that were written are found, whichever way the kernel is asked") {
  const PageMap::Ask ask = GENERATE(PageMap::Ask::scan, PageMap::Ask::words);
  Sparse memory(1 << 30);
  for (const Address written : {Address{0}, Address{1}, Address{70'000}, Address{(1 << 18) - 1}})
    memory.write(written * page);
  const std::vector<AddressRange> runs = {memory.run(0, 2), memory.run(70'000, 1), memory.run((1 << 18) - 1, 1)};
  CHECK(runs_of(PageMap(::getpid(), ask), memory.range()) == runs);
}

TEST_CASE("more runs than one call gives are all found") {
  Sparse memory(64 << 20);
  for (Address at = 0; at < memory.range().size(); at += 2 * page) memory.write(at);
  const std::vector<AddressRange> runs = runs_of(PageMap(::getpid()), memory.range());
  REQUIRE(runs.size() == memory.range().size() / (2 * page));
  for (std::size_t i = 0; i < runs.size(); ++i) REQUIRE(runs[i] == memory.run(2 * i, 1));
}

TEST_CASE("the work of asking for pages is bounded") {
  const PageMap words(::getpid(), PageMap::Ask::words);
  Sparse memory(1 << 30);
  memory.write(5 * page);
  const std::uint64_t pages = memory.range().size() / page;
  CHECK(runs_of(words, memory.range(), {pages, system::Clock::time_point::max()}).size() == 1);
  CHECK(runs_of(words, memory.range(), {pages - 1, system::Clock::time_point::max()}).empty());
  PageWork work{3 * pages, system::Clock::time_point::max()};
  CHECK(words.visit_contents(memory.range(), work, [](const AddressRange&) {}));
  CHECK(work.words == 2 * pages);
  for (const PageMap::Ask ask : {PageMap::Ask::scan, PageMap::Ask::words})
    CHECK(runs_of(PageMap(::getpid(), ask), memory.range(), {pages, system::Clock::now()}).empty());
}

TEST_CASE("a huge mapping costs nothing for its holes, and without a scan it is left out") {
  constexpr std::size_t huge = std::size_t{1} << 40;                 // ThreadSanitizer leaves no room for twice as much
  Sparse memory(huge), small(1 << 20, MAP_PRIVATE | MAP_ANONYMOUS);  // they must not become one mapping
  memory.write(huge - page);
  small.write(0);
  const AddressSpace space = own_space();
  const auto wanted = [&](const Mapping& mapping) {
    return mapping.contains(memory.start()) || mapping.contains(small.start());
  };
  const auto found = ResidentPages(::getpid(), space).find(space, wanted);
  CHECK(found.unknown_bytes == 0);
  CHECK(find_range(found.ranges, memory.range().end - page) != nullptr);
  CHECK(total_bytes(found.ranges) <= 64 * page);
  const auto without_scan = ResidentPages(::getpid(), space, PageMap::Ask::words).find(space, wanted);
  CHECK(without_scan.unknown_bytes >= huge);
  CHECK(find_range(without_scan.ranges, small.start()) != nullptr);
  CHECK(total_bytes(without_scan.ranges) <= 64 * page);
}

TEST_CASE("a shadow is no memory of the program, and what is only large is no shadow") {
  constexpr std::size_t large = std::size_t{1} << 37;
  Sparse shadow(large), arena(large);
  shadow.keep_out_of_cores();
  shadow.write(0), arena.write(0);
  const AddressSpace space = own_space();
  const ResidentPages pages(::getpid(), space);
  const auto found = pages.find(space, [](const Mapping& mapping) { return mapping.may_hold_objects(); });
  CHECK(find_range(pages.shadows(), shadow.start()) != nullptr);
  CHECK(find_range(found.ranges, shadow.start()) == nullptr);
  CHECK(find_range(found.ranges, arena.start()) != nullptr);
}

TEST_CASE("contents are the mappings, cut to the pages that they have") {
  Sparse own(1 << 20), shared(1 << 20, MAP_SHARED | MAP_ANONYMOUS);
  own.write(3 * page), shared.write(7 * page);
  const AddressSpace contents = contents_of(::getpid(), own_space());
  const Mapping *const of_own = contents.find(own.start() + 3 * page), *const of_shared = contents.find(shared.start() +
                                                                                                        7 * page);
  REQUIRE(of_own != nullptr);
  REQUIRE(of_shared != nullptr);
  CHECK_FALSE(of_own->shared);
  CHECK(of_shared->shared);
  CHECK(of_shared->start == shared.start() + 7 * page);
  CHECK(of_shared->offset == 7 * page);
  CHECK(contents.find(shared.start()) == nullptr);
  const std::vector<Mapping> searched = contents.searched();
  REQUIRE(!searched.empty());
  CHECK_FALSE(searched.front().shared);
  CHECK(searched.back().shared);
}

}  // namespace luaspy::resident_pages_test
