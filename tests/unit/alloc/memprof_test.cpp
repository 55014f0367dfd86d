// The text of Tarantool's memprof, byte for byte.

#include "alloc/memprof.h"
#include "allocations/allocation_sink.h"

#include <catch2/catch.hpp>

namespace luaspy::memprof_test {
namespace {

Stack stack_at(const std::string& file, int line) {
  return {{Frame::Kind::native, "main", "lua", 0, 0},
          {Frame::Kind::lua, "outer", "other.lua", 1, 2},
          {Frame::Kind::lua, "work", file, 3, line},
          {Frame::Kind::c, "string.format", "", 0, 0},
          marker("[string]")};
}

// Of a block that grows from `old_size`; 0: a new one, for which Lua passes its type as the old size.
AllocationSample sample_of(double calls, std::uint64_t old_size, std::uint64_t new_size) {
  constexpr std::uint64_t type_of_tables = 5, some_block = 0x1000;
  AllocationSample sample;
  sample.call = {old_size == 0 ? 0 : some_block, old_size == 0 ? type_of_tables : old_size, new_size};
  sample.calls = calls;
  sample.bytes = calls * static_cast<double>(sample.call.growth());
  return sample;
}

Memprof three_lines() {
  Memprof memprof;
  memprof.add("@app.lua:8", sample_of(1, 0, 20));
  memprof.add("@app.lua:14", sample_of(1000.4, 0, 56));
  memprof.add("@app.lua:14", sample_of(500, 0, 16));
  memprof.add("@app.lua:14", sample_of(13, 64, 128));
  memprof.add("INTERNAL", sample_of(20, 1024, 2048));
  return memprof;
}

}  // namespace

TEST_CASE("memprof: where an allocation is counted", "[unit]") {
  CHECK(Memprof::location(stack_at("app.lua", 14)) == "@app.lua:14");
  CHECK(Memprof::location(stack_at("/srv/a b.lua", 0)) == "@/srv/a b.lua:3");  // only where the function begins
  CHECK(Memprof::location(stack_at("[string \"return {}\"]", 1)) == "[string \"return {}\"]:1");
  CHECK(Memprof::location(stack_at("a\nALLOCATIONS\n", 1)).find('\n') == std::string::npos);
  CHECK(Memprof::location({{Frame::Kind::native, "main", "lua", 0, 0}}) == "INTERNAL");
}

TEST_CASE("memprof: the sections, the most events first", "[unit]") {
  CHECK(three_lines().text() ==
        "ALLOCATIONS\n"
        "@app.lua:14: 1500 events\t+64022 bytes\t-0 bytes\n"
        "@app.lua:8: 1 events\t+20 bytes\t-0 bytes\n"
        "\n"
        "REALLOCATIONS\n"
        "INTERNAL: 20 events\t+40960 bytes\t-20480 bytes\n"
        "@app.lua:14: 13 events\t+1664 bytes\t-832 bytes\n"
        "\n"
        "DEALLOCATIONS\n"
        "\n");
  CHECK(Memprof().text() == "ALLOCATIONS\n\nREALLOCATIONS\n\nDEALLOCATIONS\n\n");
}

TEST_CASE("memprof: the heap summary, if it is known what was alive, the most bytes first", "[unit]") {
  Memprof memprof = three_lines();
  memprof.add_alive("@app.lua:8", {1, 20});
  memprof.add_alive("@app.lua:14", {100, 4000});
  memprof.add_alive("@app.lua:14", {10, 1280, 1200});
  memprof.add_alive("@app.lua:14", {0, 0, 203});
  memprof.add_alive("INTERNAL", {0, 0, 7});
  const std::string text = memprof.text();
  CHECK(text.substr(text.find("DEALLOCATIONS")) ==
        "DEALLOCATIONS\n"
        "\n"
        "HEAP SUMMARY:\n"
        "@app.lua:14 holds 5280 bytes: 1513 allocs, 1403 frees\n"
        "@app.lua:8 holds 20 bytes: 1 allocs, 0 frees\n"
        "\n");
}

}  // namespace luaspy::memprof_test
