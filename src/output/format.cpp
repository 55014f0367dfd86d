#include "output/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "output/callgrind.h"
#include "output/chrometrace.h"
#include "output/firefox.h"
#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/pprof.h"
#include "output/speedscope.h"

namespace luaspy {

std::optional<Error> refusal(const Format& format, Unit unit) {
  if (format.shows != Shows::time || unit == Unit::nanoseconds) return {};
  return Error{Cause::usage, fmt::format("{} shows time only; this profile counts {}. Others show them, such as "
                                         "flamegraph and speedscope.",
                                         format.name, name(unit))};
}

std::span<const Format> formats() {
  static constexpr std::array table = {
      Format{"flamegraph", ".html", "open it in a browser", Shows::order, write_flamegraph, true},
      Format{"speedscope", ".speedscope.json",
             "open it at https://www.speedscope.app (nothing is uploaded), or: npx speedscope FILE", Shows::order,
             write_speedscope},
      Format{"raw", ".luaspy", "luaspy report FILE", Shows::sums, nullptr},
      Format{"folded", ".folded",
             "flamegraph.pl FILE > flame.svg, or inferno-flamegraph, or any viewer of folded stacks", Shows::sums,
             write_folded},
      Format{"pprof", ".pb.gz", "go tool pprof -http : FILE, or upload it to Pyroscope or Parca", Shows::sums,
             write_pprof},
      Format{"chrometrace", ".trace.json", "open it at https://ui.perfetto.dev (nothing is uploaded)", Shows::time,
             write_chrometrace},
      Format{"callgrind", ".callgrind", "kcachegrind FILE, or callgrind_annotate FILE", Shows::sums, write_callgrind},
      Format{"firefox", ".firefox.json",
             "open it at https://profiler.firefox.com (nothing is uploaded unless you share it)", Shows::order,
             write_firefox},
  };
  return table;
}

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  return found != formats().end() ? &*found : nullptr;
}

const Format* choose_format(std::string_view name, std::string_view file_name) {
  if (const Format* const named = find_format(name)) return named;
  const auto found = std::ranges::find_if(formats(),
                                          [&](const Format& format) { return file_name.ends_with(format.extension); });
  return found != formats().end() ? &*found : nullptr;
}

}  // namespace luaspy
