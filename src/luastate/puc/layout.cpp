#include "luastate/puc/layout.h"

#include <array>

#include "luastate/puc/layouts/lua51.h"
#include "luastate/puc/layouts/lua52.h"
#include "luastate/puc/layouts/lua53.h"
#include "luastate/puc/layouts/lua54.h"
#include "luastate/puc/layouts/lua55.h"

namespace luaspy {

std::span<const Layout> layouts() {
  using namespace luaspy::layout_rows;
  static constexpr std::array rows = {lua51, lua520, lua52,  lua530, lua531, lua532,
                                      lua53, lua540, lua541, lua542, lua54,  lua55};
  return rows;
}

}  // namespace luaspy
