#include "luastate/puc/layouts.h"

#include <array>

#include "luastate/puc/layouts/long_double.h"

namespace luaspy {

std::span<const Layout> layouts() {
  using namespace luaspy::layout_rows;
  static constexpr std::array rows = {lua51,
                                      lua520,
                                      lua52,
                                      lua530,
                                      lua531,
                                      lua532,
                                      lua53,
                                      lua540,
                                      lua541,
                                      lua542,
                                      lua54,
                                      lua55,
                                      lua51_long_double,
                                      lua520_long_double,
                                      lua52_long_double,
                                      lua530_long_double,
                                      lua531_long_double,
                                      lua532_long_double,
                                      lua53_long_double,
                                      lua540_long_double,
                                      lua541_long_double,
                                      lua542_long_double,
                                      lua54_long_double,
                                      lua55_long_double};
  return rows;
}

}  // namespace luaspy
