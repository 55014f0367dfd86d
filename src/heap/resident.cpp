#include "heap/resident.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "heap/c_heap.h"
#include "heap/thread_stacks.h"
#include "luastate/lua.h"

namespace luaspy {
namespace {

using Ranges = std::vector<AddressRange>;

// System V's and POSIX' shared memory, memfd_create(2), and anonymous memory that is shared.
bool is_shared_memory(const Mapping& mapping) {
  constexpr std::string_view paths[] = {"/dev/shm/", "/memfd:", "/dev/zero", "/SYSV", "/i915", "[anon_shmem:"};
  return mapping.shared && (mapping.path.empty() || std::ranges::any_of(paths, [&](std::string_view path) {
                              return mapping.path.starts_with(path);
                            }));
}

std::string in_mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

// Memory of one owner: what of it is not in use, and what Lua objects say that they have of it.
struct Pool {
  ResidentKind kind;  // of what nobody else says that it has
  std::string_view name;
  Ranges ranges;
  std::uint64_t left = 0;  // bytes resident, in use
  std::uint64_t missing = 0;
};

class Explaining {
 public:
  Explaining(const Memory& memory, const ResidentMemory& resident) : memory_(memory), resident_(resident) {}

  ResidentReport explain(std::span<const LuaUse> uses, std::span<const Address> stack_pointers) {
    report_.rss = resident_.rss(), report_.swap = resident_.swap();
    for (const ResidentMapping& one : resident_.mappings) {
      if (!one.pages_known)
        add_doubt(
            fmt::format("Which pages of the mapping at {:#x} are resident is not known: {} of it are in the rest.",
                        one.mapping.start, in_mib(one.rss)));
    }
    luajit(uses);
    c_heap();
    const Ranges stacks = claim(find_thread_stacks(memory_, resident_, stack_pointers, taken_));
    part(ResidentKind::thread_stacks) += resident_.resident_bytes(stacks);
    others();
    for (const LuaUse& use : uses) give(use);
    for (const Pool& pool : pools_) {
      part(pool.kind) += pool.left;
      if (pool.missing != 0)
        add_doubt(fmt::format(
            "{} of Lua objects are not resident in {}: they are in other memory, in swap, or were never written.",
            in_mib(pool.missing), pool.name));
    }
    return std::move(report_);
  }

 private:
  std::uint64_t& part(ResidentKind kind) { return report_.parts[static_cast<std::size_t>(kind)]; }

  void add_doubt(std::string sentence) {
    constexpr std::size_t most = 40;
    if (report_.notes.size() < most) report_.notes.push_back(std::move(sentence));
  }

  // What of these ranges belongs to nobody yet. Afterwards it belongs to the caller.
  Ranges claim(Ranges ranges) {
    sort_and_join(ranges);
    Ranges own = without(ranges, taken_);
    if (const std::uint64_t twice = total_bytes(ranges) - total_bytes(own); twice != 0)
      add_doubt(fmt::format("{} seem to belong to two parts.", in_mib(twice)));
    taken_.insert(taken_.end(), own.begin(), own.end());
    sort_and_join(taken_);
    return own;
  }

  Pool& pool(ResidentKind kind) { return *std::ranges::find(pools_, kind, &Pool::kind); }

  void luajit(std::span<const LuaUse> uses) {
    const AddressSpace space = resident_.address_space();
    Ranges segments, free;
    for (const LuaUse& use : uses) {
      const std::optional<AllocatorMemory> own = use.lua->allocator(memory_, space, use.G);
      if (!own) continue;
      segments.insert(segments.end(), own->segments.begin(), own->segments.end());
      free.insert(free.end(), own->free.begin(), own->free.end());
      if (!own->whole)
        add_doubt(fmt::format(
            "LuaJIT's allocator of the state at {:#x} was just changing: what is free in it is not known.", use.G));
    }
    sort_and_join(free);
    Ranges all = claim(std::move(segments));
    const auto found = std::ranges::find(uses, LuaKind::luajit, [](const LuaUse& use) { return use.lua->kind(); });
    if (found != uses.end()) {
      SharedLuaMemory shared = found->lua->shared_memory(memory_, resident_, taken_);
      part(ResidentKind::machine_code) += resident_.resident_bytes(claim(std::move(shared.machine_code)));
      const Ranges mapped = claim(std::move(shared.mapped_chunks));
      all.insert(all.end(), mapped.begin(), mapped.end());
      sort_and_join(all);
    }
    const std::uint64_t unused = resident_.resident_bytes(free = common_parts(free, all));
    part(ResidentKind::luajit_free) += unused;
    Pool& own = pool(ResidentKind::luajit_rest);
    own.left = resident_.resident_bytes(all) - unused;
    own.ranges = std::move(all);
  }

  void c_heap() {
    CHeap heap = read_c_heap(memory_, resident_, taken_);
    if (!heap.found) report_.c_heap = "not glibc's malloc: what it has is in the rest";
    else if (heap.areas.empty()) report_.c_heap = "glibc's malloc is there, but has no memory";
    else report_.c_heap = fmt::format("glibc's malloc, {} arena{}", heap.arenas, heap.arenas == 1 ? "" : "s");
    for (std::string& doubt : heap.doubts) add_doubt(std::move(doubt));
    Ranges areas = claim(std::move(heap.areas));
    const Ranges free = common_parts(heap.free, areas), unknown = common_parts(heap.unknown, areas);
    const std::uint64_t all = resident_.resident_bytes(areas), unused = resident_.resident_bytes(free);
    part(ResidentKind::c_free) += unused;
    Pool &known = pool(ResidentKind::c_in_use), &doubtful = pool(ResidentKind::c_unknown);
    doubtful.left = resident_.resident_bytes(unknown);
    known.left = all - unused - doubtful.left;
    known.ranges = without(areas, unknown);
    doubtful.ranges = unknown;
  }

  // What nobody has claimed goes by what is mapped.
  void others() {
    const Ranges claimed = common_parts(resident_.pages, taken_);
    const Mapping* before = nullptr;
    for (const ResidentMapping& one : resident_.mappings) {
      const Mapping& mapping = one.mapping;
      const AddressRange range{mapping.start, mapping.end};
      const std::uint64_t left = one.rss - common_bytes({&range, 1}, parts_near(claimed, range));
      // The memory right after a file's writable part is the rest of that part (.bss).
      const bool is_bss = mapping.is_anonymous() && before != nullptr && before->end == mapping.start &&
                          before->inode != 0 && before->writable && !before->shared;
      const bool is_file = mapping.inode != 0 || is_bss;
      if (mapping.shared && mapping.may_hold_objects()) {
        Pool& own = pool(is_shared_memory(mapping) ? ResidentKind::shared : ResidentKind::files);
        own.left += left;
        own.ranges.push_back(range);
      } else if (is_shared_memory(mapping)) part(ResidentKind::shared) += left;
      else if (is_file) part(ResidentKind::files) += left;
      else pool(ResidentKind::rest).left += left;
      if (is_file && !mapping.shared) report_.files_written += std::min(left, one.anonymous);
      before = &mapping;
    }
  }

  static std::span<const AddressRange> parts_near(const Ranges& ranges, const AddressRange& range) {
    const auto first = std::ranges::upper_bound(ranges, range.start, {}, &AddressRange::end);
    const auto last = std::ranges::lower_bound(ranges, range.end, {}, &AddressRange::start);
    return first < last ? std::span(first, last) : std::span<const AddressRange>();
  }

  void give(const LuaUse& use) {
    Pool* from = &pool(ResidentKind::rest);
    for (Pool& one : pools_) {
      if (find_range(one.ranges, use.G) != nullptr) from = &one;
    }
    const std::pair<ResidentKind, std::uint64_t> wanted[] = {
        {ResidentKind::lua_live, use.live}, {ResidentKind::lua_stacks, use.stacks}, {ResidentKind::lua_dead, use.dead}};
    for (const auto& [kind, bytes] : wanted) {
      const std::uint64_t given = std::min(bytes, from->left);
      part(kind) += given;
      from->left -= given;
      from->missing += bytes - given;
    }
  }

  const Memory& memory_;
  const ResidentMemory& resident_;
  ResidentReport report_;
  Ranges taken_;  // by owners; ascending and disjoint
  std::array<Pool, 6> pools_{Pool{ResidentKind::luajit_rest, "LuaJIT's allocator"},
                             Pool{ResidentKind::c_in_use, "the C heap"},
                             Pool{ResidentKind::c_unknown, "the C heap"},
                             Pool{ResidentKind::shared, "shared memory"},
                             Pool{ResidentKind::files, "mapped files"},
                             Pool{ResidentKind::rest, "the memory that is no C heap"}};
};

struct KindText {
  std::string_view key, name, meaning;
};
constexpr KindText kind_texts[] = {
    {"lua_live", "live Lua objects", "objects that the collector keeps, in bytes as Lua counts them"},
    {"lua_dead", "dead Lua objects", "garbage that the current sweep has not yet freed"},
    {"lua_stacks", "Lua stacks", "the stacks and calls of all coroutines"},
    {"luajit_free", "free in LuaJIT's allocator",
     "freed, and kept for new objects; it can be given back only where a whole segment is free"},
    {"luajit_rest", "LuaJIT's allocator, other use", "headers of chunks, buffers of the parser and the JIT compiler"},
    {"machine_code", "machine code of traces", "the areas that the JIT compiler writes its code to"},
    {"c_in_use", "C heap, other use", "what C code has got from malloc and not freed, and headers of chunks"},
    {"c_free", "C heap, free", "freed, and kept by malloc: in its bins, in caches of threads, and above all chunks"},
    {"c_unknown", "C heap, used or free", "memory of malloc that could not be told apart"},
    {"thread_stacks", "thread stacks", "the C stacks of threads, also those kept of threads that have ended"},
    {"files", "mapped files", "the program, its libraries with their variables, and other files"},
    {"shared", "shared memory", "memory that may belong to several processes, of no file on a disk"},
    {"rest", "the rest", "memory of other allocators, of other languages, of the kernel for the process"},
};
static_assert(std::size(kind_texts) == resident_kinds);

}  // namespace

std::string_view key(ResidentKind kind) { return kind_texts[static_cast<std::size_t>(kind)].key; }
std::string_view name(ResidentKind kind) { return kind_texts[static_cast<std::size_t>(kind)].name; }
std::string_view meaning(ResidentKind kind) { return kind_texts[static_cast<std::size_t>(kind)].meaning; }

ResidentReport explain_resident(const Memory& memory, const ResidentMemory& resident, std::span<const LuaUse> uses,
                                std::span<const Address> stack_pointers) {
  return Explaining(memory, resident).explain(uses, stack_pointers);
}

}  // namespace luaspy
