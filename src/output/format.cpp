#include "output/format.h"

#include <algorithm>
#include <array>

#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/speedscope.h"

namespace luaspy {

std::span<const Format> formats() {
  static constexpr std::array table = {
      Format{"flamegraph", ".html", "open it in a browser", true, write_flamegraph},
      Format{"speedscope", ".speedscope.json", "open it at https://www.speedscope.app (nothing is uploaded), or: npx speedscope FILE", true, write_speedscope},
      Format{"raw", ".luaspy", "luaspy report FILE", false, nullptr},
      Format{"folded", ".folded", "flamegraph.pl FILE > flame.svg, or inferno-flamegraph, or any viewer of folded stacks", false, write_folded},
  };
  return table;
}

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  return found != formats().end() ? &*found : nullptr;
}

const Format* format_of_file(std::string_view file_name) {
  const auto found = std::ranges::find_if(formats(), [&](const Format& format) { return file_name.ends_with(format.extension); });
  return found != formats().end() ? &*found : nullptr;
}

}  // namespace luaspy
