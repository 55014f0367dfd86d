#pragma once
// Chrome's .heapsnapshot: what the Memory panel of its DevTools loads. Tables, userdata, coroutines
// and upvalues are nodes of the type `object`, whose class is their name: luaspy's class of the
// object. Closures are `closure`, prototypes `code`, strings `string`. The types that DevTools adds
// to their only owner (`array`, `hidden`) do not occur, so that own and retained sizes stay as they
// are here.
//
//   root → what Lua has for itself, and garbage: as `synthetic` nodes, so that the sum is what the VM's own counter
//   says root → each Lua state → what HeapReader calls roots, by shortcuts also _G and package.loaded property   a
//   field, by its name        element    an array's element, or another integer key context    an upvalue, a local
//   variable            internal   everything else weak       what a weak table does not keep alive internal, with a
//   name that DevTools knows: a value that a weak key keeps alive (ephemerons)
//
// Objects that cannot be reached are in it as one sum. It is written in one go: beside what the analyses
// have, it takes 12 bytes for each object.

#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "heap/heap_analysis.h"
#include "heapdump/heapsnapshot_allocations.h"

namespace luaspy {

// The format has 32 bits for a number.
struct HeapsnapshotSizes {
  std::int64_t capped = 0;         // objects (and garbage) of 4 GiB and more: they have 4 GiB - 1 there
  std::uint64_t bytes_capped = 0;  // what is missing of them
};
// A line for people; "" if nothing is missing.
std::string to_text(const HeapsnapshotSizes& sizes);

// All analyses must be known ones. `told` is called now and then with how much of it is done (0 to
// 1). An Error if there are more objects than the format can have, some 600 million.
Result<HeapsnapshotSizes> write_heapsnapshot(std::span<const HeapAnalysis* const> analyses,
                                             const std::function<void(double part)>& told, std::ostream& out,
                                             const HeapsnapshotAllocations& allocations = {});

}  // namespace luaspy
