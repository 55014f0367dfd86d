// Core files that luaspy refuses.

#include "attach/core_file.h"

#include <elf.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace luaspy {

TEST_CASE("a core file of another processor is refused, and the message says so", "[core]") {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE, header.e_machine = EM_AARCH64, header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  const auto path = std::filesystem::temp_directory_path() / ("luaspy-" + std::to_string(::getpid()) + ".core");
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&header), sizeof header);
  const auto core = CoreFile::open({path.string(), "", ""});
  std::filesystem::remove(path);
  REQUIRE(!core);
  CHECK(core.error().cause == Cause::unsupported);
  CHECK(core.error().text == path.string() +
                                 " is from a 32-bit process or from another kind of machine; luaspy reads x86-64 core "
                                 "files.");
}

}  // namespace luaspy
