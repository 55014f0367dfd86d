// Core files that luaspy refuses; and pages of another size than the running kernel's.

#include "attach/core_file.h"

#include <elf.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "arch/machine.h"

namespace luaspy::core_file_test {
namespace {

// A file in the directory for temporary ones, which is removed again.
class TemporaryFile {
 public:
  TemporaryFile(const char* name, std::span<const std::byte> bytes)
      : path_(std::filesystem::temp_directory_path() / ("luaspy-" + std::to_string(::getpid()) + name)) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class ElfBytes {
 public:
  ElfBytes(std::uint16_t type, std::uint16_t machine) {
    std::copy_n(ELFMAG, SELFMAG, header_.e_ident);
    header_.e_ident[EI_CLASS] = ELFCLASS64, header_.e_ident[EI_DATA] = ELFDATA2LSB,
    header_.e_ident[EI_VERSION] = EV_CURRENT;
    header_.e_type = type, header_.e_machine = machine, header_.e_version = EV_CURRENT;
    header_.e_phoff = sizeof header_, header_.e_ehsize = sizeof header_, header_.e_phentsize = sizeof(Elf64_Phdr);
  }
  // `bytes` are put at `part.p_offset`.
  void add(Elf64_Phdr part, const std::vector<std::byte>& bytes) {
    part.p_filesz = part.p_memsz = bytes.size();
    parts_.push_back(part);
    contents_.resize(std::max(contents_.size(), part.p_offset + bytes.size()));
    std::ranges::copy(bytes, contents_.begin() + static_cast<std::ptrdiff_t>(part.p_offset));
  }
  std::vector<std::byte> bytes() {
    header_.e_phnum = static_cast<std::uint16_t>(parts_.size());
    contents_.resize(std::max(contents_.size(), sizeof header_ + parts_.size() * sizeof(Elf64_Phdr)));
    std::memcpy(contents_.data(), &header_, sizeof header_);
    if (!parts_.empty())
      std::memcpy(contents_.data() + sizeof header_, parts_.data(), parts_.size() * sizeof(Elf64_Phdr));
    return contents_;
  }

 private:
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> parts_;
  std::vector<std::byte> contents_;
};

void add_note(std::vector<std::byte>& notes, std::uint32_t type, std::span<const std::byte> content) {
  const Elf64_Nhdr head{5, static_cast<std::uint32_t>(content.size()), type};
  constexpr char owner[8] = "CORE";
  const auto add = [&](std::span<const std::byte> part) { notes.insert(notes.end(), part.begin(), part.end()); };
  add(std::as_bytes(std::span(&head, 1))), add(std::as_bytes(std::span(owner))), add(content);
  notes.resize((notes.size() + 3) / 4 * 4);
}

// Of a process with one thread that has mapped 64 KiB of a file at 0x400000, from `offset` on.
std::vector<std::byte> core_with_pages(std::uint64_t page_bytes, const std::string& file, std::uint64_t offset) {
  const prstatus_t status{};
  const std::uint64_t auxiliary[] = {AT_PAGESZ, page_bytes, AT_NULL, 0};
  const std::uint64_t files[] = {1, page_bytes, 0x400000, 0x410000, offset / page_bytes};
  std::vector<std::byte> mapped(sizeof files + file.size() + 1);
  std::memcpy(mapped.data(), files, sizeof files);
  std::memcpy(mapped.data() + sizeof files, file.c_str(), file.size());
  std::vector<std::byte> notes;
  add_note(notes, NT_PRSTATUS, std::as_bytes(std::span(&status, 1)));
  add_note(notes, NT_AUXV, std::as_bytes(std::span(auxiliary)));
  add_note(notes, NT_FILE, mapped);
  ElfBytes core(ET_CORE, own_machine().elf_machine);
  core.add({PT_NOTE, 0, 0x1000, 0, 0, 0, 0, 4}, notes);
  return core.bytes();
}

}  // namespace

// The code of the file begins in the middle of a page; the kernel maps that page from its start on.
TEST_CASE("a core file has the pages of the kernel that wrote it", "[core]") {
  ElfBytes program(ET_DYN, own_machine().elf_machine);
  constexpr std::uint64_t code_at = 0x6234;
  program.add({PT_LOAD, PF_R | PF_X, code_at, code_at, code_at, 0, 0, 0x10000}, std::vector<std::byte>(0x2000));
  const TemporaryFile file(".so", program.bytes());
  const auto open = [&](std::uint64_t page_bytes, std::uint64_t offset) {
    const TemporaryFile core(".core", core_with_pages(page_bytes, file.path(), offset));
    Result<std::unique_ptr<CoreFile>> opened = CoreFile::open({core.path(), "", ""});
    REQUIRE(opened);
    REQUIRE((*opened)->address_space().mappings().size() == 1);
    return std::move(*opened);
  };
  const auto usual = open(4096, 0x6000);
  CHECK(usual->page_bytes() == 4096);
  CHECK(usual->address_space().mappings()[0].executable);
  CHECK_FALSE(open(4096, 0x4000)->address_space().mappings()[0].executable);
  // Not a size that this processor's pages have: as if it said nothing.
  CHECK(open(12345, 0)->page_bytes() == 4096);
}

TEST_CASE("a core file of another processor is refused, and the message says so", "[core]") {
  const TemporaryFile file(".core", ElfBytes(ET_CORE, EM_AARCH64).bytes());
  const auto core = CoreFile::open({file.path(), "", ""});
  REQUIRE(!core);
  CHECK(core.error().cause == Cause::unsupported);
  CHECK(core.error().text == file.path() +
                                 " is from a 32-bit process or from another kind of machine; luaspy reads x86-64 core "
                                 "files.");
}

}  // namespace luaspy::core_file_test
