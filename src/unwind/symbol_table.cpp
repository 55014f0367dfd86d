#include "unwind/symbol_table.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "unwind/xz_size.h"

namespace luaspy {
namespace {

// libelf and libdwfl unpack sections on their own, so they are not asked for symbols in a file
// whose sections would be larger: the symbols of the biggest programs take about 200 MB.
constexpr std::uint64_t most_unpacked = 256 << 20;  // bytes
constexpr int most_symbols = 1 << 24;

// False if a section that libdwfl reads symbols from is packed, and too big or of unknown size.
bool is_bounded(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return true;  // no names: libdwfl uses the program headers
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text != nullptr ? text : "";
    const bool has_symbols = header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM ||
                             header.sh_type == SHT_STRTAB || header.sh_type == SHT_SYMTAB_SHNDX;
    // No tool packs these; elf_compress_gnu (libelf) decides by the name.
    if (has_symbols && ((header.sh_flags & SHF_COMPRESSED) != 0 || name.starts_with(".z"))) return false;
    if (name != ".gnu_debugdata") continue;
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const std::optional<std::uint64_t> size = unpacked_size({static_cast<const std::byte*>(data->d_buf), data->d_size});
    if (!size || *size > most_unpacked) return false;
  }
  return true;
}

bool is_bounded(int file) {
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(file, ELF_C_READ_MMAP, nullptr);
  const bool bounded = elf == nullptr || elf_kind(elf) != ELF_K_ELF || is_bounded(elf);
  elf_end(elf);
  return bounded;
}

DebugFileServer debug_file_server = nullptr;

// A descriptor, or -1.
int ask_server(Dwfl_Module* module) {
  const unsigned char* id = nullptr;
  GElf_Addr unused = 0;
  const int size = debug_file_server != nullptr ? dwfl_module_build_id(module, &id, &unused) : 0;
  std::string build_id;
  for (int i = 0; i < size; ++i) build_id += fmt::format("{:02x}", id[i]);
  const std::string path = build_id.empty() ? "" : debug_file_server(build_id);
  return path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

int find_debug_file(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* link, GElf_Word crc, char** found_name) {
  int file = dwfl_build_id_find_debuginfo(module, user, name, base, file_name, link, crc, found_name);
  if (file < 0) file = ask_server(module);
  if (file < 0 || is_bounded(file)) return file;
  ::close(file);
  return -1;
}

// The precedence that dwfl_module_addrinfo gives to a symbol's binding.
unsigned strength(const GElf_Sym& symbol) {
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      return 3;
    case STB_WEAK:
      return 2;
    case STB_LOCAL:
      return 1;
    default:
      return 0;
  }
}

bool may_be_function(const GElf_Sym& symbol) {
  const unsigned type = GELF_ST_TYPE(symbol.st_info);
  return type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC;
}

}  // namespace

struct SymbolTable::Entry {
  Address start, end;    // a label if both are equal
  std::uint32_t number;  // libdwfl's
  std::uint8_t strength;
  bool global;  // in the part of the table that is searched first
  bool exact;   // a label that matches only its own address
};

// Goes through a file's addresses upwards and finds the chosen symbol at each place where it may
// change.
class SymbolTable::Sweep {
 public:
  // `entries` ascend by start and number.
  explicit Sweep(const std::vector<Entry>& entries)
      : entries_(entries), work_left_(static_cast<std::int64_t>(64 * entries.size() + (1 << 20))) {}

  // False if so many symbols overlap that the sweep would take too long: no linker makes such a
  // file.
  bool run(std::vector<Address>& starts, std::vector<std::uint32_t>& symbols) {
    for (const Address place : places()) {
      pass(place);
      if (work_left_ < 0) return false;
      const std::uint32_t symbol = chosen(place);
      if (!symbols.empty() && symbols.back() == symbol) continue;
      starts.push_back(place);
      symbols.push_back(symbol);
    }
    return true;
  }

 private:
  std::vector<Address> places() const {
    std::vector<Address> places;
    places.reserve(2 * entries_.size());
    for (const Entry& entry : entries_) {
      places.push_back(entry.start);
      places.push_back(entry.end != entry.start ? entry.end : entry.start + 1);  // a label is the first choice only at
                                                                                 // its own address
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());  // clang 14 cannot use ranges::unique
    return places;
  }

  void pass(Address place) {
    for (std::vector<const Entry*>* open : {&globals_, &locals_}) {
      work_left_ -= static_cast<std::int64_t>(open->size());
      std::erase_if(*open, [&](const Entry* entry) { return entry->end <= place; });
    }
    const std::size_t first = next_;
    for (; next_ < entries_.size() && entries_[next_].start == place; ++next_) {
      const Entry& entry = entries_[next_];
      if (entry.end > reach_) reach_ = entry.end, label_ = nullptr;
      if (entry.end != entry.start) insert(entry, entry.global ? globals_ : locals_);
    }
    here_global_ = here_local_ = nullptr;
    for (std::size_t i = first; i < next_; ++i) {
      const Entry& entry = entries_[i];
      if (entry.end != entry.start) continue;
      (entry.global ? here_global_ : here_local_) = &entry;
      if (entry.start == reach_ && !entry.exact && comes_after(entry, label_)) label_ = &entry;
    }
  }

  // Local symbols come after global ones; both are in the order of their numbers.
  static bool comes_after(const Entry& entry, const Entry* other) {
    if (other == nullptr) return true;
    return entry.global != other->global ? other->global : entry.number > other->number;
  }

  void insert(const Entry& entry, std::vector<const Entry*>& open) {
    auto at = open.end();
    while (at != open.begin() && (*std::prev(at))->number > entry.number) --at, --work_left_;
    open.insert(at, &entry);
  }

  // `open`: the symbols that contain a place, in the order of the table.
  const Entry* closest(const std::vector<const Entry*>& open) {
    work_left_ -= static_cast<std::int64_t>(open.size());
    const Entry* best = nullptr;
    for (const Entry* const entry : open) {
      const bool shorter = best != nullptr && entry->start == best->start && entry->end < best->end &&
                           entry->strength >= best->strength;
      if (best == nullptr || best->start < entry->start || best->strength < entry->strength || shorter) best = entry;
    }
    return best;
  }

  std::uint32_t chosen(Address place) {
    const Entry* entry = closest(globals_);
    if (entry == nullptr) entry = here_global_;
    if (entry == nullptr) entry = closest(locals_);
    if (entry == nullptr && reach_ == place) entry = here_local_;
    if (entry == nullptr) entry = label_;
    return entry != nullptr ? entry->number : 0;
  }

  const std::vector<Entry>& entries_;
  std::size_t next_ = 0;
  std::vector<const Entry*> globals_, locals_;                  // that contain the place, by number
  const Entry *here_global_ = nullptr, *here_local_ = nullptr;  // labels at the place
  Address reach_ = 0;             // the highest end of a symbol so far: labels below it are within that symbol
  const Entry* label_ = nullptr;  // at reach_
  std::int64_t work_left_;
};

void ask_for_debug_files(DebugFileServer server) { debug_file_server = server; }

SymbolTable::SymbolTable(int file, const std::string& path, Address bias) {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, find_debug_file, dwfl_offline_section_address,
                                           &debug_path};
  if (file < 0 || !is_bounded(file) || (dwfl_ = dwfl_begin(&callbacks)) == nullptr) return;
  dwfl_report_begin(dwfl_);
  // libdwfl closes the descriptor that it is given.
  module_ = dwfl_report_elf(dwfl_, path.c_str(), path.c_str(), ::dup(file), bias, true);
  dwfl_report_end(dwfl_, nullptr, nullptr);
  if (module_ == nullptr) return;
  std::vector<Entry> entries = read_entries();
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.start != b.start ? a.start < b.start : a.number < b.number;
  });
  if (!Sweep(entries).run(starts_, symbols_)) starts_.clear(), symbols_.clear();
  starts_.shrink_to_fit();
  symbols_.shrink_to_fit();
}

SymbolTable::~SymbolTable() {
  if (dwfl_ != nullptr) dwfl_end(dwfl_);
}

std::vector<SymbolTable::Entry> SymbolTable::read_entries() {
  std::vector<Entry> entries;
  const int count = std::min(dwfl_module_getsymtab(module_), most_symbols);
  const int first_global = dwfl_module_getsymtab_first_global(module_);
  first_global_ = static_cast<std::uint32_t>(std::max(first_global, 0));
  for (int i = 1; i < count && first_global >= 0; ++i) {
    GElf_Sym symbol;
    GElf_Addr value = 0;
    GElf_Word section = SHN_UNDEF;
    const char* const name = dwfl_module_getsym_info(module_, i, &symbol, &value, &section, nullptr, nullptr);
    const unsigned type = GELF_ST_TYPE(symbol.st_info);
    if (type == STT_FILE && i < first_global) sources_.push_back(static_cast<std::uint32_t>(i));
    if (name == nullptr || *name == '\0' || symbol.st_shndx == SHN_UNDEF || value + symbol.st_size < value) continue;
    if (type == STT_SECTION || type == STT_FILE || type == STT_TLS) continue;
    entries.push_back({value, value + symbol.st_size, static_cast<std::uint32_t>(i),
                       static_cast<std::uint8_t>(strength(symbol)), i >= first_global, section >= SHN_LORESERVE});
  }
  return entries;
}

std::optional<Symbol> SymbolTable::find(Address address) const {
  const auto next = std::ranges::upper_bound(starts_, address);
  if (next == starts_.begin()) return std::nullopt;
  const std::uint32_t number = symbols_[static_cast<std::size_t>(next - starts_.begin()) - 1];
  if (number == 0) return std::nullopt;
  GElf_Sym symbol;
  GElf_Addr value = 0;
  const char* const name = dwfl_module_getsym_info(module_, static_cast<int>(number), &symbol, &value, nullptr, nullptr,
                                                   nullptr);
  if (name == nullptr || !may_be_function(symbol)) return std::nullopt;
  if (symbol.st_size == 0 && value != address && !same_section(address, value)) return std::nullopt;
  const bool is_local = number < first_global_;
  return Symbol{name, value, is_local, is_local ? source_of(number) : std::string()};
}

std::string SymbolTable::source_of(std::uint32_t number) const {
  const auto next = std::ranges::upper_bound(sources_, number);
  if (next == sources_.begin()) return {};
  GElf_Sym symbol;
  GElf_Addr value = 0;
  const char* const name = dwfl_module_getsym_info(module_, static_cast<int>(*std::prev(next)), &symbol, &value,
                                                   nullptr, nullptr, nullptr);
  return name != nullptr ? name : "";
}

bool SymbolTable::same_section(Address a, Address b) const {
  Dwarf_Addr bias = 0;
  return dwfl_module_address_section(module_, &a, &bias) == dwfl_module_address_section(module_, &b, &bias);
}

}  // namespace luaspy
