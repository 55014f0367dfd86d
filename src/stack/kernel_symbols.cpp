#include "stack/kernel_symbols.h"

#include <algorithm>
#include <tuple>

#include "base/words.h"

namespace luaspy {
namespace {

constexpr std::size_t most_symbols = 4'000'000, longest_symbol = 512;  // KSYM_NAME_LEN
constexpr std::string_view text_types = "tTwW";                        // nm(1)

std::size_t underscores(std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); }

}  // namespace

KernelSymbols::KernelSymbols(std::string_view kallsyms) {
  std::string_view last_module;
  std::uint32_t last_module_at = 0;
  while (!kallsyms.empty() && symbols_.size() < most_symbols) {
    std::string_view line = next_line(kallsyms);
    Symbol symbol;
    symbol.address = number<Address>(next_word(line), 16);
    const std::string_view type = next_word(line), name = next_word(line);
    std::string_view module = next_word(line);
    if (symbol.address == 0 || type.size() != 1 || text_types.find(type[0]) == text_types.npos) continue;
    if (name.empty() || name.size() > longest_symbol || module.size() > longest_symbol) continue;
    if (name.starts_with("__pfx_")) continue;  // padding before a function
    if (module.starts_with('[') && module.ends_with(']')) module = module.substr(1, module.size() - 2);
    symbol.name = static_cast<std::uint32_t>(texts_.size());
    symbol.name_size = static_cast<std::uint16_t>(name.size());
    texts_ += name;
    if (module != last_module) {
      last_module = module;
      last_module_at = static_cast<std::uint32_t>(texts_.size());
      texts_ += module;
    }
    symbol.module = last_module_at;
    symbol.module_size = static_cast<std::uint16_t>(module.size());
    symbols_.push_back(symbol);
  }
  // Of several names for one place the plainest is taken.
  const auto key = [this](const Symbol& symbol) {
    const std::string_view name(texts_.data() + symbol.name, symbol.name_size);
    return std::tuple(symbol.address, underscores(name), name.size(), name);
  };
  std::ranges::sort(symbols_, [&](const Symbol& a, const Symbol& b) { return key(a) < key(b); });
  const auto same = [](const Symbol& a, const Symbol& b) { return a.address == b.address; };
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(), same), symbols_.end());
}

// No symbol says where its function ends.
KernelFunction KernelSymbols::at(Address address) const {
  constexpr Address longest_function = 1 << 18;
  const auto after = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
  if (after == symbols_.begin()) return {};
  const Symbol& symbol = *std::prev(after);
  if (address - symbol.address > longest_function) return {};
  return {{texts_.data() + symbol.name, symbol.name_size}, {texts_.data() + symbol.module, symbol.module_size}};
}

}  // namespace luaspy
