#include "unwind/module.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "unit/unwind/file_with_frames.h"

namespace luaspy::module_test {

// A segment may begin in the middle of a page: the kernel maps that page from its start on, and pages of
// arm64 may have 16 or 64 KiB.
TEST_CASE("a module is where it is mapped, however large pages are", "[unwind]") {
  constexpr Address segment_at = 0x16234, size = 0x20000, base = 0x7f00'0000'0000;
  std::vector<std::byte> file = file_with_frames(EM_AARCH64, aarch64_rules, {});
  file.resize(segment_at + size);
  put(file, sizeof(Elf64_Ehdr),
      Elf64_Phdr{PT_LOAD, PF_R | PF_X, segment_at, segment_at, segment_at, size, size, 0x10000});
  for (const Address page : {0x1000, 0x4000, 0x10000}) {
    INFO(page);
    const Address offset = segment_at / page * page;
    Mapping mapping{.start = base + offset,
                    .end = base + segment_at + size,
                    .offset = offset,
                    .readable = true,
                    .executable = true,
                    .inode = 7};
    mapping.end = (mapping.end + page - 1) / page * page;
    const OneStack memory({});
    const std::unique_ptr<Module> module = Module::load(
        {mapping},
        [&](const Mapping&) {
          const int opened = ::memfd_create("made", MFD_CLOEXEC);
          return ::write(opened, file.data(), file.size()) == static_cast<ssize_t>(file.size()) ? opened : -1;
        },
        memory);
    REQUIRE(module != nullptr);
    CHECK(module->bias() == base);
    CHECK(module->executes(base + segment_at));
  }
}

}  // namespace luaspy::module_test
