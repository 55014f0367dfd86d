#include "heap/resident.h"
#include "heapreport/heap_json.h"
#include "heapreport/heap_text.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "heap/thread_stacks.h"
#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_lua.h"
#include "unit/heap/heap_image.h"

namespace luaspy::resident_test {
namespace {

constexpr Address stack = 0x7f10'0000'0000, stack_size = 0x10000, descriptor = stack + stack_size - 0x940;

// Between two others, which the kernel has joined with it.
void add_stack(HeapImage& image) {
  image.map(stack - 0x4000, stack_size + 0x8000, "");
  image.put(descriptor, descriptor), image.put(descriptor + 16, descriptor);
  image.put(descriptor + 0x690, stack), image.put(descriptor + 0x698, stack_size);
}

void add_others(HeapImage& image) {
  image.map(0x5500'0000'0000, 0x5000, "/usr/bin/lua", 3);
  image.map(0x7ffc'0000'0000, 0x3000, "[stack]");
  image.map(0x7ffc'1000'0000, 0x1000, "[vdso]");
  for (ResidentMapping& one : image.resident.mappings) {
    if (one.mapping.path == "/usr/bin/lua") one.anonymous = 0x2000;
  }
}

const Lua& luajit_of_image() {
  LuajitLayout layout = layout_rows::luajit_gc64;
  layout.G_gc = 16;
  return luajit_lua(layout);
}

std::uint64_t sum(const ResidentReport& report) {
  return std::accumulate(std::begin(report.parts), std::end(report.parts), std::uint64_t{0});
}

}  // namespace

TEST_CASE("a thread's stack is found by its descriptor, also within a bigger mapping") {
  HeapImage image;
  add_stack(image);
  CHECK(find_thread_stacks(image, image.resident, {}, {}) == std::vector<AddressRange>{{stack, stack + stack_size}});
  // Larger pages are searched as a whole; a stack has whole ones.
  image.resident.page_bytes = 0x4000;
  CHECK(find_thread_stacks(image, image.resident, {}, {}) == std::vector<AddressRange>{{stack, stack + stack_size}});
  image.put(descriptor + 0x690, stack + 0x1000), image.put(descriptor + 0x698, stack_size - 0x1000);
  CHECK(find_thread_stacks(image, image.resident, {}, {}).empty());
  // That is a descriptor's own word, too, but says of no stack.
  HeapImage other;
  other.map(stack, stack_size, "");
  other.put(stack + 64, stack + 64), other.put(stack + 80, stack + 64);
  CHECK(find_thread_stacks(other, other.resident, {}, {}).empty());
  const Address sp = stack + 8;
  CHECK(find_thread_stacks(other, other.resident, {&sp, 1}, {}) ==
        std::vector<AddressRange>{{stack, stack + stack_size}});
}

TEST_CASE("resident memory is divided into parts that add up") {
  HeapImage image;
  add_glibc_heap(image), add_luajit_heap(image), add_stack(image), add_others(image);
  const LuaUse use{&luajit_of_image(), luajit_image::G, 5000, 700, 300};
  const ResidentReport report = explain_resident(image, image.resident, {&use, 1}, {});
  CHECK(report.rss == image.resident.rss());
  CHECK(sum(report) == report.rss);
  CHECK(report.notes.empty());
  CHECK(report.c_heap == "glibc's malloc, 1 arena");
  CHECK(report[ResidentKind::lua_live] == 5000);
  CHECK(report[ResidentKind::lua_dead] == 700);
  CHECK(report[ResidentKind::lua_stacks] == 300);
  const std::uint64_t luajit_free = luajit_image::free_size + 0x40 + luajit_image::segment_size - luajit_image::tail -
                                    64;
  CHECK(report[ResidentKind::luajit_free] == luajit_free);
  CHECK(report[ResidentKind::luajit_rest] ==
        luajit_image::segment_size + luajit_image::alone_size - luajit_free - 6000);
  CHECK(report[ResidentKind::machine_code] == 2 * luajit_image::code_size);
  CHECK(report[ResidentKind::c_in_use] == 0x290 + 0x1000 + 0x20 + glibc_image::alone_size);
  CHECK(report[ResidentKind::thread_stacks] == stack_size + 0x3000);
  CHECK(report[ResidentKind::files] == 0x5000 + glibc_image::data_size);
  CHECK(report.files_written == 0x2000);
  CHECK(report[ResidentKind::shared] == 0);
  CHECK(report[ResidentKind::rest] == 0x8000 + 0x1000);

  const nlohmann::json json = nlohmann::json::parse(to_json({}, {}, 0, &report)).at("resident");
  CHECK(json["rss"] == report.rss);
  REQUIRE(json["parts"].size() == resident_kinds);
  CHECK(json["parts"][0]["kind"] == "lua_live");
  CHECK(json["parts"][0]["name"] == "live Lua objects");
  CHECK(json["parts"][0]["bytes"] == 5000);
  const std::string text = to_text(report, Paint(false));
  CHECK(text.starts_with(fmt::format("Resident memory: {:.1f} KiB\n", static_cast<double>(report.rss) / 1024)));
  CHECK(text.find("thread stacks\n") != std::string::npos);
  CHECK(text.find("mapped files, of which 8.0 KiB are written by the process\n") != std::string::npos);
  CHECK(text.find("shared memory") == std::string::npos);
  CHECK(text.ends_with("\nC heap: glibc's malloc, 1 arena\n"));
}

TEST_CASE("what is not resident counts nowhere") {
  using namespace glibc_image;
  HeapImage image;
  add_glibc_heap(image);
  // Of the heap, only the first page and the page of top's head.
  for (ResidentMapping& one : image.resident.mappings) {
    if (one.mapping.path == "[heap]") one.rss = 0x2000;
  }
  const AddressRange kept[] = {{heap, heap + 0x1000}, {top / 0x1000 * 0x1000, top / 0x1000 * 0x1000 + 0x1000}};
  image.resident.pages = without(image.resident.pages, std::vector<AddressRange>{{heap, heap + heap_size}});
  image.resident.pages.insert(image.resident.pages.end(), std::begin(kept), std::end(kept));
  sort_and_join(image.resident.pages);
  const ResidentReport report = explain_resident(image, image.resident, {}, {});
  CHECK(sum(report) == report.rss);
  const std::vector<AddressRange> free = {{fast, used}, {in_bin, guard}, {top, heap + heap_size}};
  CHECK(report[ResidentKind::c_free] == common_bytes(free, kept));
  CHECK(report[ResidentKind::c_in_use] == 0x2000 - common_bytes(free, kept) + alone_size);
}

TEST_CASE("more Lua objects than their allocator has resident are cut, and that is said") {
  HeapImage image;
  add_glibc_heap(image), add_others(image);
  // A state outside of everything that is known: a part of the rest.
  image.map(0x6000'0000'0000, 0x2000, "");
  const LuaUse uses[] = {{&luajit_of_image(), 0x6000'0000'0100, 0x1000, 0x9000, 0},
                         {&luajit_of_image(), glibc_image::used + 0x20, 0x800, 0, 0}};
  const ResidentReport report = explain_resident(image, image.resident, uses, {});
  CHECK(sum(report) == report.rss);
  CHECK(report[ResidentKind::lua_live] == 0x1800);
  CHECK(report[ResidentKind::lua_dead] == 0x2000 + 0x1000 - 0x1000);  // with [vdso]
  CHECK(report[ResidentKind::rest] == 0);
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].find("of Lua objects are not resident in the memory that is no C heap") != std::string::npos);
}

TEST_CASE("a mapping whose pages are not known is in the rest, and that is said") {
  HeapImage image;
  add_glibc_heap(image);
  image.resident.pages = without(
      image.resident.pages, std::vector<AddressRange>{{glibc_image::heap, glibc_image::heap + glibc_image::heap_size}});
  for (ResidentMapping& one : image.resident.mappings) one.pages_known = one.mapping.path != "[heap]";
  const ResidentReport report = explain_resident(image, image.resident, {}, {});
  CHECK(sum(report) == report.rss);
  CHECK(report[ResidentKind::rest] == glibc_image::heap_size);
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].starts_with("Which pages of the mapping at 0x555500000000 are resident is not known"));
}

TEST_CASE("parts add up whatever is in memory") {
  Dice dice;
  for (int i = 0; i < 1500; ++i) {
    HeapImage image;
    add_glibc_heap(image), add_luajit_heap(image), add_stack(image), add_others(image);
    image.damage(dice);
    const LuaUse uses[] = {{&luajit_of_image(), luajit_image::G, dice(1 << 18), dice(1 << 18), dice(1 << 18)},
                           {&luajit_of_image(), glibc_image::used + 8, dice(1 << 18), 0, dice(1 << 18)}};
    const ResidentReport report = explain_resident(image, image.resident, uses, {});
    CHECK(report.rss == image.resident.rss());
    CHECK(sum(report) == report.rss);
    CHECK(image.reads < 1'000'000);
    CHECK(report.notes.size() <= 40);
  }
}

}  // namespace luaspy::resident_test
