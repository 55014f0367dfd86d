// Compares the symbol of an address as luaspy and dwfl_module_addrinfo (elfutils) choose it, at
// every place of real programs and libraries where it may change: where a symbol begins or ends,
// and a byte before and after.
//   compare_symbols WORK FILE|DIRECTORY…      directories are searched recursively; other files than ELF
//                                             files are skipped
// libdwfl examines all symbols of a file for each address. Of a file where it would examine more than WORK, so many of
// the places are compared that it does not, evenly spread: with 3e8 some thousand of each. Prints the number of files,
// addresses and symbols, how many differ, and the time per address of each. Exit code 1 if any differs.

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "unwind/symbol_table.h"

namespace luaspy {
namespace {

using Clock = std::chrono::steady_clock;

class Reference {
 public:
  Reference(int file, const std::string& path, Address bias) {
    static char* debug_path = nullptr;
    static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_build_id_find_debuginfo,
                                             dwfl_offline_section_address, &debug_path};
    dwfl_ = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl_);
    module_ = dwfl_report_elf(dwfl_, path.c_str(), path.c_str(), ::dup(file), bias, true);
    dwfl_report_end(dwfl_, nullptr, nullptr);
  }
  ~Reference() { dwfl_end(dwfl_); }
  bool works() const { return module_ != nullptr; }

  std::vector<Address> places() const {
    std::vector<Address> places;
    const int count = dwfl_module_getsymtab(module_);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr value = 0;
      if (dwfl_module_getsym_info(module_, i, &symbol, &value, nullptr, nullptr, nullptr) == nullptr) continue;
      for (const Address at : {value, value + symbol.st_size, value + symbol.st_size / 2}) {
        for (const Address near : {at - 1, at, at + 1}) places.push_back(near);
      }
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  std::optional<Symbol> find(Address address) const {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* const name = dwfl_module_addrinfo(module_, address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || (symbol.st_size != 0 && offset >= symbol.st_size)) return std::nullopt;
    const unsigned type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) return std::nullopt;
    return Symbol{name, address - offset, false, {}};
  }

 private:
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

struct Counts {
  std::int64_t files = 0, addresses = 0, symbols = 0, differ = 0;
  Clock::duration own{}, theirs{};
};

std::string text(const std::optional<Symbol>& symbol) {
  return symbol ? fmt::format("{} at {:#x}", symbol->name, symbol->start) : "none";
}

void compare(const std::string& path, double most_work, Counts& counts) {
  constexpr Address bias = 0x5555'5000'0000;
  constexpr std::size_t most_told = 20;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const Reference reference(file, path, bias);
  if (reference.works()) {
    const SymbolTable table(file, path, bias);
    const std::vector<Address> places = reference.places();
    const double work = static_cast<double>(places.size()) * static_cast<double>(places.size()) / 6;
    const auto step = static_cast<std::size_t>(std::max(1.0, work / most_work)) | 1;
    ++counts.files;
    for (std::size_t i = 0; i < places.size(); i += step) {
      const Clock::time_point start = Clock::now();
      const std::optional<Symbol> own = table.find(places[i]);
      const Clock::time_point middle = Clock::now();
      const std::optional<Symbol> theirs = reference.find(places[i]);
      counts.own += middle - start;
      counts.theirs += Clock::now() - middle;
      ++counts.addresses;
      counts.symbols += theirs.has_value();
      const bool same = own.has_value() == theirs.has_value() &&
                        (!own || (own->name == theirs->name && own->start == theirs->start));
      if (same) continue;
      if (static_cast<std::size_t>(++counts.differ) <= most_told)
        fmt::print("{} {:#x}: {}, libdwfl says {}\n", path, places[i], text(own), text(theirs));
    }
  }
  ::close(file);
}

}  // namespace
}  // namespace luaspy

int main(int argc, char** argv) {
  luaspy::Counts counts;
  if (argc < 3) return 2;
  const double most_work = std::stod(argv[1]);
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) luaspy::compare(argv[i], most_work, counts);
    else
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
        if (entry.is_regular_file() && !entry.is_symlink()) luaspy::compare(entry.path(), most_work, counts);
      }
  }
  const auto each = [&](luaspy::Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count() /
           static_cast<double>(std::max<std::int64_t>(counts.addresses, 1));
  };
  fmt::print("{} files, {} addresses, {} with a symbol: {} differ; {:.2f} µs each, libdwfl's {:.2f} µs\n", counts.files,
             counts.addresses, counts.symbols, counts.differ, each(counts.own), each(counts.theirs));
  return counts.differ == 0 && counts.symbols > 0 ? 0 : 1;
}
