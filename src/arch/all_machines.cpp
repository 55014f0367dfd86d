#include "arch/machine.h"

#include "arch/aarch64/machine.h"
#include "arch/x86_64/machine.h"

namespace luaspy {

const Machine* find_machine(std::string_view name) {
  for (const Machine* const machine : {&x86_64::machine(), &aarch64::machine()}) {
    if (machine->name == name) return machine;
  }
  return nullptr;
}

}  // namespace luaspy
