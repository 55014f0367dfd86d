// Which functions have call frame information, by the linker's table and without it.

#include "unwind/frame_index.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "unit/unwind/file_with_frames.h"
#include "unwind/frame_table.h"

namespace luaspy::frame_index_test {
namespace {

constexpr Address section_at = 0x200;

// A file with nothing but `entries` at section_at.
FrameIndex index_of(const std::vector<std::byte>& entries) {
  static std::vector<std::byte> file;
  file.assign(section_at, {});
  file.insert(file.end(), entries.begin(), entries.end());
  ElfHeaders headers;
  headers.segments.push_back({.type = PT_LOAD, .file_size = file.size(), .memory_size = file.size()});
  return FrameIndex::of_entries(LoadedBytes(file, headers), section_at, entries.size());
}

// This program has more than 100 MB: not byte by byte.
std::string read_all(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What is at section_at in a file that file_with_frames() made.
std::vector<std::byte> entries_of(const std::vector<FunctionWithFrames>& functions) {
  const std::vector<std::byte> file = file_with_frames(EM_X86_64, x86_64_rules, functions);
  return {file.begin() + frames_at,
          file.begin() + frames_at + 0x18 + 0x18 * static_cast<std::ptrdiff_t>(functions.size())};
}

}  // namespace

// A static program of glibc without PIE has .eh_frame, and no table.
TEST_CASE("an index made of .eh_frame is the linker's table", "[unit]") {
  const std::string text = read_all("/proc/self/exe");
  const auto file = std::as_bytes(std::span(text));
  const std::optional<Section> section = find_section(file, ".eh_frame");
  REQUIRE(section);
  const FrameIndex table = FrameTable(file, 0).index();
  const FrameIndex made = FrameIndex::of_entries(LoadedBytes(file, read_elf_headers(file).value()), section->address,
                                                 section->size);
  REQUIRE(table.size() > 1000);
  REQUIRE(made.size() == table.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < table.size(); ++i)
    differ += made[i].start != table[i].start || made[i].entry != table[i].entry;
  CHECK(differ == 0);
  const FrameIndex::Function last = table[table.size() - 1];
  CHECK(made.find(last.start + 1).value().entry == last.entry);
  CHECK_FALSE(made.find(table[0].start - 1));
}

TEST_CASE("functions in .eh_frame", "[unit]") {
  const std::vector<std::byte> entries = entries_of(
      {{0x800, 0x100, {}}, {0x700, 0x100, {}}, {0xa00, 0, {}}, {0, 0x10, {}}});
  const FrameIndex index = index_of(entries);
  REQUIRE(index.size() == 2);  // not the one without code, nor the one that the linker has dropped
  CHECK(index[0].start == 0x700);
  CHECK(index[1].start == 0x800);
  CHECK(index.find(0x7ff).value().start == 0x700);
  CHECK_FALSE(index.find(0x6ff));

  std::vector<std::byte> ended = entries;
  ended.insert(ended.begin() + 0x18 + 0x18, 4, std::byte{0});           // what one object file has ends here
  put(ended, 0x18 + 0x18 + 4 + 4, std::uint32_t{0x18 + 0x18 + 4 + 4});  // the next entry's CIE is 4 bytes further away
  CHECK(index_of(ended).size() == 2);

  std::vector<std::byte> cut = entries;
  put(cut, 0x18 + 0x18, std::uint32_t{0x1000});  // longer than the section
  CHECK(index_of(cut).size() == 1);
  CHECK(index_of({}).size() == 0);
}

TEST_CASE("functions that a file exports", "[unit]") {
  const std::string text = read_all("/proc/self/exe");
  const auto file = std::as_bytes(std::span(text));
  CHECK_FALSE(find_exported_function(file, "main_"));
  CHECK_FALSE(find_exported_function(file, ""));
  Dl_info info{};
  REQUIRE(::dladdr(reinterpret_cast<void*>(&::dl_iterate_phdr), &info) != 0);  // of libc
  const std::string libc = read_all(info.dli_fname);
  const std::optional<Address> found = find_exported_function(std::as_bytes(std::span(libc)), "dl_iterate_phdr");
  REQUIRE(found);
  CHECK(*found + reinterpret_cast<Address>(info.dli_fbase) == reinterpret_cast<Address>(info.dli_saddr));
}

TEST_CASE("sections of files", "[unit]") {
  const std::string text = read_all("/proc/self/exe");
  const auto bytes = std::as_bytes(std::span(text));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  CHECK_FALSE(find_section(file, ".eh_fram"));
  CHECK_FALSE(find_section(file, ".bss"));      // has no bytes
  CHECK_FALSE(find_section(file, ".comment"));  // is not loaded
  const auto header = load<Elf64_Ehdr>(file, 0);
  const auto with = [&](auto change) {
    Elf64_Ehdr changed = header;
    change(changed);
    put(file, 0, changed);
    return find_section(file, ".eh_frame").has_value();
  };
  CHECK(with([](Elf64_Ehdr&) {}));
  CHECK_FALSE(with([](Elf64_Ehdr& changed) { changed.e_shoff = 0, changed.e_shnum = 0, changed.e_shstrndx = 0; }));
  CHECK_FALSE(with([](Elf64_Ehdr& changed) { changed.e_shoff = ~std::uint64_t{0}; }));
  CHECK_FALSE(with([](Elf64_Ehdr& changed) { changed.e_shstrndx = 0xffff; }));
  CHECK_FALSE(with([](Elf64_Ehdr& changed) { changed.e_shentsize = 1; }));
}

}  // namespace luaspy::frame_index_test
