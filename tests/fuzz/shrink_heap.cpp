// Makes the copied heaps of corpus/objects, of snapshots of small_heap.lua: what nothing asks for
// becomes zero.

#include <cstdio>
#include <fstream>
#include <set>

#include "heap/heap_analysis.h"
#include "heapdump/heap_file.h"
#include "heaps.h"

namespace luaspy::fuzz {
namespace {

class UsedBytes : public Memory {
 public:
  explicit UsedBytes(const Memory& whole) : whole_(whole) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (!whole_.read(address, into)) return false;
    for (std::size_t i = 0; i < into.size(); ++i) used_.insert(address + i);
    return true;
  }
  bool is_used(Address address) const { return used_.contains(address); }

 private:
  const Memory& whole_;
  mutable std::set<Address> used_;
};

}  // namespace

int shrink_heap(const char* from, const char* to) {
  Result<HeapSnapshot> snapshot = read_heap_file(from);
  if (!snapshot) return std::fprintf(stderr, "%s\n", snapshot.error().text.c_str()), 1;
  const UsedBytes used(*snapshot->memory);
  const Analyses analyses = analyse(*snapshot, used);
  ask(everything, *snapshot, analyses, {});
  for (const HeapSnapshot::State& state : snapshot->states) {
    const Address main = state.lua->main_thread(used, state.G);
    (void)state.lua->recognise_main(used, main, state.G);
  }
  std::vector<AddressRange> ranges;
  for (const MemoryImage::Part& part : snapshot->memory->parts()) {
    ranges.push_back({part.start, part.end()});
    for (std::size_t i = 0; i < part.size; ++i) {
      if (!used.is_used(part.start + i)) part.bytes[i] = std::byte{0};
    }
  }
  snapshot->command = "lua";
  std::ofstream out(to, std::ios::binary);
  write_heap_file(out, *snapshot, ranges);
  return 0;
}

}  // namespace luaspy::fuzz
