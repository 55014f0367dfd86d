#include "luastate/image_parts.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "luastate/detect.h"

namespace luaspy::image_parts_test {
namespace {

constexpr Address parts_start = 0x7f0000000000, parts_page = 4096;

// A library of three pages: headers, code, constants with the name of a Lua. So many bytes of it can be read.
class PartlyMapped : public Memory {
 public:
  PartlyMapped() : bytes_(3 * parts_page) {
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_phoff = sizeof head, head.e_phentsize = sizeof(Elf64_Phdr), head.e_phnum = 3;
    std::memcpy(bytes_.data(), &head, sizeof head);
    for (std::size_t i = 0; i < 3; ++i) {
      Elf64_Phdr header{};
      header.p_type = PT_LOAD, header.p_flags = i == 1 ? PF_R | PF_X : PF_R;
      header.p_offset = header.p_vaddr = i * parts_page, header.p_filesz = header.p_memsz = parts_page;
      std::memcpy(bytes_.data() + sizeof head + i * sizeof header, &header, sizeof header);
    }
    constexpr std::string_view ident = "$LuaVersion: Lua 5.4.6  Copyright";
    std::memcpy(bytes_.data() + 2 * parts_page + 100, ident.data(), ident.size());
  }
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    const Address offset = address - parts_start;
    if (offset > readable || readable - offset < into.size()) return false;
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return true;
  }
  std::size_t readable = 3 * parts_page;
  mutable int reads = 0;

 private:
  std::vector<std::byte> bytes_;
};

// As much of it as is mapped: `pages` of three.
AddressSpace mapped_pages(std::size_t pages) {
  std::vector<Mapping> mappings;
  for (std::size_t i = 0; i < pages; ++i) {
    Mapping mapping{.start = parts_start + i * parts_page,
                    .end = parts_start + (i + 1) * parts_page,
                    .readable = true,
                    .executable = i == 1};
    mapping.inode = 7, mapping.path = "/usr/lib/liblua5.4.so.0", mapping.offset = i * parts_page;
    mappings.push_back(mapping);
  }
  return AddressSpace(mappings);
}

}  // namespace

TEST_CASE("a Lua whose constants are mapped after its code is found", "[image_parts]") {
  const PartlyMapped library;
  Detector detector;
  KnownImages known;
  const auto version = [](const Mapping&) { return std::optional(FileVersion{1, 7, 3 * parts_page, 1}); };
  for (int looks = 0; looks < 3; ++looks) {
    CHECK_FALSE(detector.update(mapped_pages(2), library, &known, version));
    CHECK(detector.is_incomplete());
  }
  CHECK(known.empty());  // other processes of the file have Lua, too
  CHECK(detector.update(mapped_pages(3), library, &known, version));
  CHECK_FALSE(detector.is_incomplete());
  REQUIRE(detector.images().size() == 1);
  CHECK(detector.images()[0].version == "5.4.6");
  CHECK(known.size() == 1);
}

TEST_CASE("a Lua whose constants cannot be read at first is found", "[image_parts]") {
  PartlyMapped library;
  library.readable = 2 * parts_page;
  Detector detector;
  CHECK_FALSE(detector.update(mapped_pages(3), library));
  CHECK(detector.is_incomplete());
  library.readable = 3 * parts_page;
  CHECK(detector.update(mapped_pages(3), library));
  CHECK_FALSE(detector.is_incomplete());
  CHECK_FALSE(detector.update(mapped_pages(3), library));
  CHECK(detector.images().size() == 1);
}

TEST_CASE("what never is whole is not searched for ever", "[image_parts]") {
  PartlyMapped library;
  library.readable = parts_page;
  Detector detector;
  int looks = 0;
  for (; looks < 100; ++looks) {
    (void)detector.update(mapped_pages(3), library);
    if (!detector.is_incomplete()) break;
  }
  CHECK(looks < 20);
  library.reads = 0;
  (void)detector.update(mapped_pages(3), library);
  CHECK(library.reads == 0);
}

}  // namespace luaspy::image_parts_test
