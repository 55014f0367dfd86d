#include "attach/core_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <signal.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "system/calls.h"
#include "system/kernel_registers.h"

namespace luaspy {
namespace {

constexpr std::size_t most_segments = 1 << 20, most_threads = 1 << 16, most_files = 1 << 20;

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;

// A C string within a field of fixed size.
template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return std::string(field, std::find(field, field + size, '\0'));
}

// signal(7): the signals whose default action dumps core, without SIGTRAP: it comes from a
// debugger, and is in the cores of gcore.
bool ends_in_core(int signal) {
  constexpr std::array signals = {SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGSYS, SIGXCPU, SIGXFSZ};
  return std::ranges::find(signals, signal) != signals.end();
}

// An impossible run time counts as 0.
template <typename Time>
std::int64_t ns_of(const Time& time) {
  constexpr std::int64_t most_s = 1'000'000'000, most_us = 1'000'000;
  if (time.tv_sec < 0 || time.tv_sec > most_s || time.tv_usec < 0 || time.tv_usec > most_us) return 0;
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_usec * std::int64_t{1000};
}

// Whether this is the result of a system call that a stop or a signal has interrupted (Linux:
// ERESTARTSYS to ERESTART_RESTARTBLOCK; or EINTR).
bool was_interrupted(std::int64_t answer) {
  constexpr std::int64_t interrupted = -4, first_restart = -516, last_restart = -512;
  return answer == interrupted || (answer >= first_restart && answer <= last_restart);
}

// Whether the part of an ELF file that begins at `offset`, with a page of so many bytes, is executable,
// according to its program headers.
bool is_code(const FileDescriptor& file, std::uint64_t offset, std::uint64_t page) {
  const ElfHandle elf(elf_begin(file.number(), ELF_C_READ, nullptr));
  std::size_t count = 0;
  if (!elf || elf_getphdrnum(elf.get(), &count) != 0) return false;
  for (std::size_t i = 0; i < std::min(count, most_segments); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
    if (header.p_offset / page * page == offset && (header.p_flags & PF_X) != 0) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<CoreFile>> CoreFile::open(const CoreOptions& options) {
  std::unique_ptr<CoreFile> core(new CoreFile);
  system::Failure failure;
  core->file_ = system::open_file(options.path, O_RDONLY, &failure);
  struct stat status {};
  if (!core->file_) return Error{Cause::usage, fmt::format("Cannot read {}: {}.", options.path, failure.text())};
  if (::fstat(core->file_.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error{Cause::usage, fmt::format("{} is not a file.", options.path)};
  core->written_ns_ = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  if (Result<void> read = core->read_headers(options.path, static_cast<std::uint64_t>(status.st_size)); !read)
    return read.error();
  if (Result<void> located = core->locate_files(options); !located) return located.error();
  core->map();
  return core;
}

Result<void> CoreFile::read_headers(const std::string& path, std::uint64_t size) {
  elf_version(EV_CURRENT);
  const ElfHandle elf(elf_begin(file_.number(), ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr ||
      header.e_type != ET_CORE)
    return Error{Cause::usage, fmt::format("{} is not a core file.", path)};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || !system::is_own_machine(header.e_machine))
    return Error{Cause::unsupported,
                 fmt::format("{} is from a 32-bit process or from another kind of machine; luaspy reads {} core files.",
                             path, system::own_machine_title())};
  std::size_t count = 0;
  if (elf_getphdrnum(elf.get(), &count) != 0) count = 0;
  for (std::size_t i = 0; i < std::min(count, most_segments); ++i) {
    GElf_Phdr part;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &part) == nullptr) break;
    if (part.p_type == PT_LOAD && part.p_memsz != 0 && part.p_vaddr < address_limit &&
        part.p_memsz <= address_limit - part.p_vaddr) {
      const std::uint64_t kept = std::min(part.p_filesz, part.p_memsz),
                          there = part.p_offset < size ? std::min(kept, size - part.p_offset) : 0;
      segments_.push_back({part.p_vaddr, part.p_vaddr + part.p_memsz, part.p_offset, kept, there,
                           (part.p_flags & PF_W) != 0, (part.p_flags & PF_X) != 0});
      missing_bytes_ += kept - there;
    }
    if (part.p_type != PT_NOTE) continue;
    Elf_Data* const notes = elf_getdata_rawchunk(elf.get(), static_cast<std::int64_t>(part.p_offset), part.p_filesz,
                                                 ELF_T_NHDR);
    std::size_t name = 0, content = 0;
    GElf_Nhdr note;
    for (std::size_t at = 0; notes != nullptr && (at = gelf_getnote(notes, at, &note, &name, &content)) != 0;) {
      const std::string_view owner(static_cast<const char*>(notes->d_buf) + name, note.n_namesz);
      if (owner.starts_with("CORE"))
        read_note(note.n_type, {static_cast<const std::byte*>(notes->d_buf) + content, note.n_descsz});
    }
  }
  const auto sort = [](auto& parts) {
    std::ranges::sort(parts, {}, [](const auto& part) { return part.start; });
    Address end = 0;
    // Overlapping parts are dropped.
    std::erase_if(parts, [&](const auto& part) { return part.start < end || (end = part.end, false); });
  };
  sort(segments_), sort(ranges_);
  if (threads_.empty())
    return Error{Cause::usage,
                 fmt::format("{} contains no thread: {}", path,
                             missing_bytes_ != 0 ? "it was cut off before its end." : "luaspy cannot use it.")};
  if (pid_ == 0) pid_ = threads_.front().tid;
  return {};
}

void CoreFile::read_note(std::uint32_t type, std::span<const std::byte> content) {
  switch (type) {
    case NT_PRSTATUS:
      return read_status(content);
    case NT_FILE:
      return read_files(content);
    case NT_AUXV:
      return read_auxiliary(content);
    case NT_PRPSINFO: {
      if (content.size() < sizeof(prpsinfo_t)) return;
      const auto info = load<prpsinfo_t>(content, 0);
      pid_ = info.pr_pid;
      command_ = text_of(info.pr_psargs);
      while (command_.ends_with(' ')) command_.pop_back();
      if (command_.empty()) command_ = '[' + text_of(info.pr_fname) + ']';
      command_ = printable(command_);
      return;
    }
    case NT_SIGINFO: {
      if (content.size() < sizeof(siginfo_t)) return;
      const auto info = load<siginfo_t>(content, 0);
      const bool by_kernel = info.si_code > 0;  // sigaction(2): otherwise a process has sent it
      if (by_kernel && (info.si_signo == SIGSEGV || info.si_signo == SIGBUS))
        signal_address_ = reinterpret_cast<Address>(info.si_addr);
      return;
    }
    default:
      return;
  }
}

// sys/procfs.h, prstatus_t: one for each thread.
void CoreFile::read_status(std::span<const std::byte> content) {
  if (content.size() < sizeof(prstatus_t) || threads_.size() >= most_threads) return;
  const auto status = load<prstatus_t>(content, 0);
  static_assert(sizeof status.pr_reg == sizeof(user_regs_struct));
  const auto raw = load<user_regs_struct>(std::as_bytes(std::span(&status.pr_reg, 1)), 0);
  Thread thread;
  thread.tid = status.pr_pid;
  thread.registers = system::registers_of(raw);
  thread.on_cpu_ns = ns_of(status.pr_utime) + ns_of(status.pr_stime);
  const system::SystemCall call = system::system_call_of(raw);
  if (call.number >= 0 && was_interrupted(call.result)) {
    thread.system_call = call.number;
    thread.arguments = call.arguments;
  }
  if (threads_.empty() && ends_in_core(status.pr_cursig)) signal_ = status.pr_cursig;
  threads_.push_back(thread);
}

// Linux, fs/binfmt_elf.c, fill_files_note: the number of files, the size of a page; for each file
// start, end and offset in pages; then the names.
void CoreFile::read_files(std::span<const std::byte> content) {
  constexpr std::size_t word = sizeof(std::uint64_t), head = 2 * word, entry = 3 * word;
  if (content.size() < head) return;
  const auto count = load<std::uint64_t>(content, 0), unit = load<std::uint64_t>(content, word);
  if (count > (content.size() - head) / entry || count > most_files || unit > (1 << 30)) return;
  std::map<std::string, std::size_t, std::less<>> known;
  std::string_view names(reinterpret_cast<const char*>(content.data()), content.size());
  names.remove_prefix(head + count * entry);
  for (std::size_t i = 0; i < count && !names.empty(); ++i) {
    const std::size_t at = head + i * entry;
    const FileRange range{load<Address>(content, at), load<Address>(content, at + word),
                          load<std::uint64_t>(content, at + 2 * word) * unit, 0};
    std::string_view name = names.substr(0, names.find('\0'));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    if (range.start >= range.end || range.end > address_limit) continue;
    constexpr std::string_view gone = " (deleted)";
    const bool deleted = name.ends_with(gone);
    const auto [file, is_new] = known.emplace(name, files_.size());
    if (deleted) name.remove_suffix(gone.size());
    if (is_new) files_.push_back({std::string(name), {}, deleted, File::State::unknown, {}});
    ranges_.push_back(range);
    ranges_.back().file = file->second;
  }
}

// getauxval(3).
void CoreFile::read_auxiliary(std::span<const std::byte> content) {
  for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= content.size(); at += sizeof(Elf64_auxv_t)) {
    const auto entry = load<Elf64_auxv_t>(content, at);
    const std::uint64_t value = entry.a_un.a_val;
    if (entry.a_type == AT_PAGESZ) page_bytes_ = own_machine().page_bytes(value);
    if (entry.a_type == AT_ENTRY) entry_ = value;
    if (entry.a_type == AT_SYSINFO_EHDR) vdso_ = value;
    if (entry.a_type == AT_RANDOM) top_of_stack_ = value;
  }
}

Result<void> CoreFile::locate_files(const CoreOptions& options) {
  for (File& file : files_) file.at = options.root + file.path;
  if (options.executable.empty()) return {};
  const FileRange* const program = range_at(entry_);
  if (program == nullptr)
    return Error{
        Cause::usage,
        fmt::format("{} does not say which of its files is the program, so --exe cannot be used.", options.path)};
  files_[program->file].at = options.executable;
  files_[program->file].deleted = false;
  const File& file = look_up(*program);
  if (file.state == File::State::missing)
    return Error{Cause::usage, fmt::format("Cannot read {}: {}.", options.executable,
                                           system::why_unreadable(options.executable).text())};
  if (file.state == File::State::differs)
    return Error{Cause::usage, fmt::format("{} is not the program that {} comes from: {}", options.executable,
                                           options.path, file.path)};
  return {};
}

const CoreFile::Segment* CoreFile::segment_at(Address address) const {
  const auto above = std::ranges::upper_bound(segments_, address, {}, &Segment::start);
  return above != segments_.begin() && address < std::prev(above)->end ? &*std::prev(above) : nullptr;
}

const CoreFile::FileRange* CoreFile::range_at(Address address) const {
  const auto above = std::ranges::upper_bound(ranges_, address, {}, &FileRange::start);
  return above != ranges_.begin() && address < std::prev(above)->end ? &*std::prev(above) : nullptr;
}

Mapping CoreFile::mapping_of(const Segment& segment) const {
  Mapping mapping{segment.start, segment.end, 0, true, segment.writable, segment.executable, false, 0, 0, {}, false};
  if (const FileRange* const range = range_at(segment.start)) {
    const File& file = files_[range->file];
    mapping.offset = range->offset + (segment.start - range->start);
    mapping.inode = range->file + 1;
    mapping.path = file.path;
    mapping.deleted = file.deleted;
  } else if (vdso_ != 0 && segment.start == vdso_) {
    mapping.path = "[vdso]";
  } else if (top_of_stack_ >= segment.start && top_of_stack_ < segment.end) {
    mapping.path = "[stack]";
  }
  return mapping;
}

// The kernel writes a segment for every mapping. gcore writes none for mappings whose contents it
// leaves out, so their permissions are missing too.
void CoreFile::map() {
  std::vector<Mapping> mappings;
  for (const Segment& segment : segments_) mappings.push_back(mapping_of(segment));
  for (const FileRange& range : ranges_) {
    if (segment_at(range.start) != nullptr) continue;
    const File& file = look_up(range);
    const bool executable = file.state != File::State::usable || is_code(file.opened, range.offset, page_bytes_);
    mappings.push_back({range.start, range.end, range.offset, true, false, executable, false, 0, range.file + 1,
                        file.path, file.deleted});
  }
  std::ranges::sort(mappings, {}, &Mapping::start);
  Address end = 0;
  std::erase_if(mappings, [&](const Mapping& mapping) { return mapping.start < end || (end = mapping.end, false); });
  space_ = AddressSpace(std::move(mappings));
}

// The first page of an ELF file describes its layout and usually has its build-id. The kernel and
// gcore keep that page by default, so a file that begins differently is a different one. The smallest
// page is enough of it.
const CoreFile::File& CoreFile::look_up(const FileRange& range) const {
  File& file = files_[range.file];
  if (file.state != File::State::unknown) return file;
  file.state = File::State::missing;
  if (file.deleted) return file;
  FileDescriptor opened = system::open_file(file.at, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  // Files in /proc and the like have no size, and reading one may block for ever.
  if (!opened || ::fstat(opened.number(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return file;
  file.state = File::State::usable;
  const auto first = std::ranges::find_if(
      ranges_, [&](const FileRange& each) { return each.file == range.file && each.offset == 0; });
  const Segment* const segment = first != ranges_.end() ? segment_at(first->start) : nullptr;
  std::array<std::byte, smallest_page> in_core, in_file;
  if (segment != nullptr && !segment->writable && segment->start == first->start && segment->there >= smallest_page &&
      system::read_at(file_, segment->offset, in_core) && (!system::read_at(opened, 0, in_file) || in_core != in_file))
    file.state = File::State::differs;
  if (file.state == File::State::usable) file.opened = std::move(opened);
  return file;
}

// Returns how many bytes could be read before the first that is neither in the core nor in a file.
std::size_t CoreFile::read_some(Address address, std::span<std::byte> into) const {
  const Segment* const segment = segment_at(address);
  if (segment != nullptr && address - segment->start < segment->kept) {
    const std::uint64_t at = address - segment->start;
    const std::size_t size = at < segment->there ? std::min<std::uint64_t>(into.size(), segment->there - at) : 0;
    return system::read_at(file_, segment->offset + at, into.first(size)) ? size : 0;
  }
  const FileRange* const range = range_at(address);
  if (range == nullptr) return 0;
  const File& file = look_up(*range);
  if (file.state != File::State::usable) return 0;
  const Address end = segment != nullptr ? std::min(segment->end, range->end) : range->end;
  const std::size_t size = std::min<std::uint64_t>(into.size(), end - address);
  return system::read_at(file.opened, range->offset + (address - range->start), into.first(size)) ? size : 0;
}

bool CoreFile::read(Address address, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::size_t size = address < address_limit ? read_some(address, into) : 0;
    if (size == 0) return false;
    address += size;
    into = into.subspan(size);
  }
  return true;
}

FileDescriptor CoreFile::open_mapped(const Mapping& mapping) const {
  const FileRange* const range = range_at(mapping.start);
  if (range == nullptr || look_up(*range).state != File::State::usable) return {};
  return system::open_file(files_[range->file].at, O_RDONLY);
}

std::vector<CoreFile::MissingFile> CoreFile::missing_files() const {
  std::vector<MissingFile> missing;
  for (const FileRange& range : ranges_) {
    const Mapping* const mapping = space_.find(range.start);
    if (mapping == nullptr || !mapping->executable) continue;
    const Segment* const segment = segment_at(range.start);
    if (segment != nullptr && segment->kept == segment->end - segment->start) continue;
    const File& file = look_up(range);
    if (file.state == File::State::missing || file.state == File::State::differs)
      missing.push_back({file.path, file.state == File::State::differs});
  }
  return missing;
}

}  // namespace luaspy
