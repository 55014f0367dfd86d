#pragma once
// The names of the kernel's functions, from the text of /proc/kallsyms.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/registers.h"

namespace luaspy {

// A function of the kernel. `module`: the name of a kernel module, without brackets; empty: the kernel itself.
struct KernelFunction {
  std::string_view name, module;  // name empty: not known
  bool operator==(const KernelFunction&) const = default;
};

class KernelSymbols {
 public:
  // Knows nothing.
  KernelSymbols() = default;
  // Lines "ADDRESS TYPE NAME" and "ADDRESS TYPE NAME\t[MODULE]" (kernel/kallsyms.c, s_show()). Without the right to
  // see them all addresses are 0, and nothing is known. What is no such line, and what is more than a kernel can
  // have, is left out.
  explicit KernelSymbols(std::string_view kallsyms);

  bool empty() const { return symbols_.empty(); }
  // What contains the address. Valid as long as this object.
  KernelFunction at(Address address) const;

 private:
  struct Symbol {
    Address address = 0;
    std::uint32_t name = 0, module = 0;  // where they begin in texts_
    std::uint16_t name_size = 0, module_size = 0;
  };
  std::string texts_;
  std::vector<Symbol> symbols_;  // by address
};

}  // namespace luaspy
