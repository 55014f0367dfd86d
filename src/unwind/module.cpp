#include "unwind/module.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "unwind/elf_headers.h"

namespace luaspy {
namespace {

constexpr std::size_t copy_limit = 256 << 20;
constexpr std::size_t most_code = 256 << 20, most_targets = 8 << 20;  // bytes searched for calls; calls found: 64 MiB

}  // namespace

Module::~Module() { unmap_file(); }

void Module::unmap_file() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_size_);
  if (file_ >= 0) ::close(file_);
  mapped_ = nullptr, file_ = -1, bytes_ = {};
}

std::string_view Module::name() const {
  if (!called_.empty()) return called_;
  const std::string_view path = path_;
  return path.substr(path.rfind('/') + 1);
}

std::unique_ptr<Module> Module::load(const std::vector<Mapping>& mappings, const Opener& opener, const Memory& memory,
                                     KnownSymbols* known) {
  std::unique_ptr<Module> module(new Module);
  module->known_symbols_ = known;
  module->path_ = mappings.front().path;
  const bool has_file = mappings.front().inode != 0;
  bool have_bytes = has_file && module->map_file(opener(mappings.front()));
  if (have_bytes && !module->is_what_is_mapped(memory, mappings.front())) module->unmap_file(), have_bytes = false;
  have_bytes = have_bytes || module->copy_from(memory, mappings);
  if (!have_bytes || !module->read_program_headers(mappings)) return nullptr;
  return module;
}

bool Module::map_file(int file) {
  file_ = file;
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0 || status.st_size <= 0) return false;
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return false;
  mapped_ = mapped;
  mapped_size_ = static_cast<std::size_t>(status.st_size);
  bytes_ = {static_cast<const std::byte*>(mapped), mapped_size_};
  return true;
}

// Files are identified by their inodes, but another file system can have the same inode. Therefore
// the ELF header, the program headers and usually the build-id are compared; they are never
// modified in memory.
bool Module::is_what_is_mapped(const Memory& memory, const Mapping& first) const {
  constexpr std::size_t compared = 1024;
  std::array<std::byte, compared> in_memory;
  if (first.writable || first.offset >= bytes_.size()) return true;
  const std::size_t size = std::min<std::size_t>({compared, bytes_.size() - first.offset, first.end - first.start});
  if (!memory.read(first.start, std::span(in_memory).first(size))) return true;
  return std::equal(in_memory.begin(), in_memory.begin() + static_cast<std::ptrdiff_t>(size),
                    bytes_.begin() + static_cast<std::ptrdiff_t>(first.offset));
}

bool Module::copy_from(const Memory& memory, const std::vector<Mapping>& mappings) {
  const Address start = mappings.front().start;
  if (mappings.back().end - start > copy_limit) return false;
  copy_.resize(mappings.back().end - start);
  for (const Mapping& mapping : mappings) {
    if (mapping.readable &&
        !memory.read(mapping.start, {copy_.data() + (mapping.start - start), mapping.end - mapping.start})) {
      // A page beyond the file's end cannot be read; the rest can.
      bool any = false;
      for (Address page = mapping.start; page < mapping.end; page += smallest_page)
        any |= memory.read(page, {copy_.data() + (page - start), smallest_page});
      if (!any) missing_.push_back({mapping.start, mapping.end});
    }
  }
  by_address_ = true;
  bytes_ = copy_;
  // The vdso is a whole ELF file: libdwfl can read its symbols if it has a descriptor.
  if (mappings.front().inode == 0 && (file_ = ::memfd_create("vdso", MFD_CLOEXEC)) >= 0 &&
      ::write(file_, copy_.data(), copy_.size()) < 0) {
    ::close(file_);
    file_ = -1;
  }
  return true;
}

bool Module::read_program_headers(const std::vector<Mapping>& mappings) {
  const std::optional<ElfHeaders> headers = read_elf_headers(bytes_);
  if (!headers) return false;
  const Mapping& first = mappings.front();
  bool have_bias = false;
  for (const ProgramHeader& header : headers->segments) {
    // The mapping begins with the page that the segment begins in, however large the kernel's pages are.
    if (header.type == PT_LOAD && !have_bias && header.offset < first.offset + (first.end - first.start) &&
        header.offset + header.file_size > first.offset) {
      bias_ = first.start - first.offset + header.offset - header.address;
      have_bias = true;
    }
  }
  for (const ProgramHeader& header : headers->segments) {
    const Address start = header.address + bias_;
    const bool missing = std::ranges::any_of(missing_,
                                             [&](const Code& each) { return start >= each.start && start < each.end; });
    if (header.type == PT_LOAD && !missing)
      add_segment(start, header.file_size, by_address_ ? start - first.start : header.offset, header.offset,
                  (header.flags & PF_X) != 0);
    if (header.type == PT_GNU_EH_FRAME) eh_frame_hdr_ = start, eh_frame_hdr_size_ = header.memory_size;
  }
  std::size_t there = 0;
  for (const Segment& segment : segments_) {
    if (eh_frame_hdr_ >= segment.start && eh_frame_hdr_ < segment.end) there = segment.end - eh_frame_hdr_;
  }
  eh_frame_hdr_size_ = std::min(eh_frame_hdr_size_, there);
  if (headers->entry != 0) entry_ = headers->entry + bias_;
  std::ranges::sort(segments_, {}, &Segment::start);
  return have_bias && !segments_.empty();
}

// Adds the part of a segment for which there are bytes: a file may claim anything.
void Module::add_segment(Address start, std::uint64_t size, std::uint64_t offset, std::uint64_t file_offset,
                         bool executable) {
  if (offset >= bytes_.size()) return;
  size = std::min<std::uint64_t>(size, bytes_.size() - offset);
  if (size == 0 || start + size <= start) return;
  is_file_ &= offset == file_offset;
  segments_.push_back({start, start + size, offset, executable});
}

const FrameTable* Module::frames() const {
  if (frames_ == nullptr && is_file_) frames_ = std::make_unique<FrameTable>(bytes_, bias_);
  return frames_.get();
}

const FrameIndex& Module::frame_index() const {
  if (const FrameTable* const table = frames()) return table->index();
  if (own_index_) return *own_index_;
  std::span<const std::byte> header;
  for (const Segment& segment : segments_) {
    if (eh_frame_hdr_ >= segment.start && eh_frame_hdr_ < segment.end)
      header = bytes_.subspan(segment.offset + (eh_frame_hdr_ - segment.start), eh_frame_hdr_size_);
  }
  return own_index_.emplace(FrameIndex::of_table(header, eh_frame_hdr_ - bias_));
}

std::vector<Module::Code> Module::code() const {
  std::vector<Code> ranges;
  for (const Segment& segment : segments_) {
    if (segment.executable) ranges.push_back({segment.start, segment.end});
  }
  return ranges;
}

bool Module::executes(Address address) const {
  return std::ranges::any_of(segments_, [&](const Segment& segment) {
    return segment.executable && address >= segment.start && address < segment.end;
  });
}

bool Module::read(Address address, std::span<std::byte> into) const {
  for (const Segment& segment : segments_) {
    if (address < segment.start || address >= segment.end || into.size() > segment.end - address) continue;
    const std::uint64_t offset = segment.offset + (address - segment.start);
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset) return false;
    std::ranges::copy(bytes_.subspan(offset, into.size()), into.begin());  // `into` may be empty
    return true;
  }
  return false;
}

std::optional<Symbol> Module::symbol(Address address) const {
  // A copy of the target's memory has a file of its own (the vdso), or none.
  KnownSymbols own;
  if (!symbols_) symbols_ = (known_symbols_ != nullptr && has_file() ? *known_symbols_ : own).of(file_, path_, bias_);
  return symbols_->find(address);
}

std::optional<Address> Module::exported_function(std::string_view name) const {
  const std::optional<Address> found = has_file() ? find_exported_function(bytes_, name) : std::nullopt;
  return found ? std::optional(*found + bias_) : std::nullopt;
}

// Data sometimes looks like a call, but then the target is rarely code of the same module.
const std::vector<Address>& Module::call_targets(const MachineCode& machine) const {
  if (call_targets_) return *call_targets_;
  std::vector<Address> targets;
  std::size_t left = most_code;
  for (const Segment& segment : segments_) {
    if (!segment.executable) continue;
    const auto code = bytes_.subspan(segment.offset, std::min<std::size_t>(segment.end - segment.start, left));
    left -= code.size();
    for (std::size_t i = 0; i < code.size() && targets.size() < most_targets; i += machine.alignment) {
      const std::optional<Address> target = machine.direct_call_at(segment.start + i, code.subspan(i));
      if (target && executes(*target)) targets.push_back(*target);
    }
  }
  std::ranges::sort(targets);
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());  // clang 14 cannot use ranges::unique
  return call_targets_.emplace(std::move(targets));
}

void Modules::update(const AddressSpace& space) {
  std::vector<Entry> entries;
  const std::vector<Mapping>& mappings = space.mappings();
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Mapping& first = mappings[i];
    const bool vdso = first.path == "[vdso]";
    if (first.inode == 0 && !vdso) continue;
    const bool continues = !entries.empty() && !vdso && entries.back().mappings.front().inode == first.inode &&
                           entries.back().mappings.front().device == first.device &&
                           first.offset > entries.back().mappings.front().offset;
    if (!continues) entries.push_back({first.start, first.end, {}, nullptr});
    entries.back().end = first.end;
    entries.back().mappings.push_back(first);
  }
  std::erase_if(entries, [](const Entry& entry) { return std::ranges::none_of(entry.mappings, &Mapping::executable); });
  for (Entry& entry : entries) {
    const auto known = std::ranges::find_if(entries_, [&](const Entry& old) {
      return old.start == entry.start && old.mappings.front().inode == entry.mappings.front().inode &&
             old.mappings.size() == entry.mappings.size();
    });
    if (known != entries_.end()) entry.module = known->module, entry.loaded = known->loaded;
  }
  entries_ = std::move(entries);
  space_ = space;
}

void Modules::forget_symbols() {
  for (const Entry& entry : entries_) {
    if (entry.module != nullptr) entry.module->forget_symbols();
  }
}

const Module* Modules::find(Address address) const {
  auto entry = std::ranges::upper_bound(entries_, address, {}, &Entry::start);
  if (entry == entries_.begin()) return nullptr;
  --entry;
  if (address >= entry->end) return nullptr;
  if (!entry->loaded) {
    entry->loaded = true;
    std::unique_ptr<Module> module = Module::load(entry->mappings, opener_, memory_, known_symbols_);
    if (module != nullptr && module->path() == program_) module->called_ = called_;
    entry->module = std::move(module);
  }
  return entry->module.get();
}

Address Modules::exported_function(std::string_view name) const {
  for (const Entry& entry : entries_) {
    const Module* const module = find(entry.start);
    const std::optional<Address> found = module != nullptr ? module->exported_function(name) : std::nullopt;
    if (found) return *found;
  }
  return 0;
}

bool Modules::executes(Address address) const {
  const Mapping* const mapping = space_.find(address);
  return mapping != nullptr && mapping->executable;
}

bool Modules::cannot_execute(Address address) const {
  if (!plausible_pointer(address, 1)) return true;
  const Mapping* const mapping = space_.find(address);
  return mapping != nullptr && !mapping->executable;
}

}  // namespace luaspy
