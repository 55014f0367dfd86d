#include "output/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "output/callgrind.h"
#include "output/chrometrace.h"
#include "output/firefox.h"
#include "output/flamegraph.h"
#include "output/folded.h"
#include "output/otlp.h"
#include "output/pprof.h"
#include "output/speedscope.h"
#include "output/svg.h"

namespace luaspy {

ViewOptions shape_for(const Format& format, ViewOptions shape) {
  shape.whole = format.carries_recording;
  shape.cpus = format.tells_cpus;
  shape.tracks = format.shows_coroutines;
  return shape;
}

std::optional<Error> refusal(const Format& format, Unit unit) {
  if (format.shows != Shows::time || unit == Unit::nanoseconds) return {};
  return Error{Cause::usage, fmt::format("{} shows time only; this profile counts {}. Others show them, such as "
                                         "flamegraph and speedscope.",
                                         format.name, name(unit))};
}

std::span<const Format> formats() {
  static constexpr std::array table = {
      Format{"flamegraph", ".html", "", "open it in a browser", Shows::order, write_flamegraph, write_flamegraph_diff,
             true, false, false, true},
      Format{"svg", ".svg", "", "open it in a browser, or put it into a page: it is a picture", Shows::sums, write_svg,
             write_svg_diff},
      Format{"speedscope", ".speedscope.json", ".json",
             "open it at https://www.speedscope.app (nothing is uploaded), or: npx speedscope FILE", Shows::order,
             write_speedscope, write_speedscope_diff},
      Format{"raw", ".luaspy", "", "luaspy report FILE", Shows::sums, nullptr, nullptr, false, false, false, true},
      Format{"folded", ".folded", text_ending, "flamegraph.pl FILE > flame.svg, or any viewer of folded stacks",
             Shows::sums, write_folded, write_folded_diff},
      Format{"pprof", ".pb.gz", "", "go tool pprof -http : FILE, or upload it to Pyroscope or Parca", Shows::sums,
             write_pprof, nullptr, false, true},
      Format{"otlp", ".otlp", "", "send it to an OpenTelemetry Collector (luaspy push sends recordings)", Shows::sums,
             write_otlp},
      Format{"otlp-json", ".otlp.json", "", "send it to an OpenTelemetry Collector (luaspy push sends recordings)",
             Shows::sums, write_otlp_json},
      Format{"chrometrace", ".trace.json", "", "open it at https://ui.perfetto.dev (nothing is uploaded)", Shows::time,
             write_chrometrace, nullptr, false, false, true},
      Format{"callgrind", ".callgrind", "", "kcachegrind FILE, or callgrind_annotate FILE", Shows::sums,
             write_callgrind},
      Format{"firefox", ".firefox.json", "",
             "open it at https://profiler.firefox.com (nothing is uploaded unless you share it)", Shows::order,
             write_firefox, nullptr, false, false, true},
  };
  return table;
}

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  return found != formats().end() ? &*found : nullptr;
}

Result<const Format*> choose_format(std::string_view name, std::string_view file_name, const Format* otherwise) {
  if (const Format* const named = find_format(name)) return named;
  // ".trace.json" before ".json".
  for (const auto ending : {&Format::extension, &Format::also}) {
    for (const Format& format : formats()) {
      if (!(format.*ending).empty() && file_name.ends_with(format.*ending)) return &format;
    }
  }
  const std::string base = base_name(file_name);
  const std::size_t dot = base.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == base.size()) return otherwise;
  std::string endings;
  for (const Format& format : formats())
    endings += fmt::format("{}{}{}{}", endings.empty() ? "" : ", ", format.extension, format.also.empty() ? "" : ", ",
                           format.also);
  return Error{Cause::usage, fmt::format("{}: no format has the ending {}. Those that there are: {}. With -f FORMAT a "
                                         "file may end as you like.",
                                         printable(file_name), printable(base.substr(dot)), endings)};
}

std::string next_step(const Format& format, std::string_view file_name) {
  std::string step(format.next_step);
  const std::string word = shell_word(file_name);
  constexpr std::string_view file = "FILE";
  for (std::size_t at = step.find(file); at != std::string::npos; at = step.find(file, at + word.size()))
    step.replace(at, file.size(), word);
  return step;
}

}  // namespace luaspy
