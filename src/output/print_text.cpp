#include "output/print_text.h"

#include <iostream>

#include "base/display_text.h"
#include "base/paint.h"
#include "system/standard_output.h"
#include "system/terminal.h"

namespace luaspy {

Result<void> print_text(const std::string& text) {
  const system::Terminal terminal = system::terminal_of(1);
  std::cout << (terminal.is_one ? wrapped(without_invisible(text), terminal.width) : text);
  return system::flush_standard_output("the output");
}

}  // namespace luaspy
