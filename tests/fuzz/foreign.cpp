// Files of other profilers, whatever their kind (foreign).

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "fuzz.h"
#include "input/luajit_reader.h"
#include "input/recording_reader.h"
#include "output/format.h"
#include "output/summary.h"
#include "output/write_options.h"
#include "report/luajit_text.h"
#include "report/report_text.h"

namespace luaspy::fuzz {
namespace {

// LuaJIT's table of symbols with one of each kind, and a profiler's head: what a fuzzer takes long to find.
std::string luajit_stream(std::string_view profiler, char version, std::string_view events) {
  using namespace std::string_literals;
  return "ljs\x03\0\0\0"s + "\0\x10\x05@a.lu\x03"s + "\x01\x20\x08lua_call"s + "\x01\x30\x05pmain"s +
         "\x02\x01\x10\x04\x80"s + std::string(profiler) + version + "\0\0\0"s + std::string(events);
}

// As it is, or with a head that makes it one of some kind.
std::string file_of(std::uint8_t kind, std::string_view bytes) {
  switch (kind % 5) {
    case 1:
      return luajit_stream("ljp", '\x02', bytes);
    case 2:
      return luajit_stream("ljm", '\x03', bytes);
    case 3:
      return "a 1 2.5: 3 cpu-clock: \n" + std::string(bytes);
    case 4:
      return "a;b 1\n" + std::string(bytes);
    default:
      return std::string(bytes);
  }
}

void check_luajit_text(const std::string& file) {
  for (const bool is_memprof : {false, true}) {
    std::istringstream in(file);
    std::string torn;
    const Result<std::string> text = is_memprof ? memprof_text(in, {file.size() % 2 == 0, file.size() % 3 == 0}, torn)
                                                : sysprof_text(in, torn);
    if (text) expect_plain(*text, "texts of LuaJIT's profilers have no control characters");
    else expect_printable(text.error().text, 1000, "an error");
    expect_printable(torn, 1000, "where a stream is damaged");
  }
}

}  // namespace

void foreign(Bytes bytes) {
  Input input(bytes);
  const auto kind = input.take<std::uint8_t>(), flags = input.take<std::uint8_t>();
  const std::string file = file_of(kind, input.text(1 << 20));
  ViewOptions shape;
  shape.lines = (flags & 1) != 0, shape.gc = (flags & 2) != 0, shape.vmstate = (flags & 4) != 0;
  shape.mode = (flags & 8) != 0 ? Mode::all : Mode::merged;
  RawWindow window;
  window.live = (flags & 16) != 0;
  if ((flags & 32) != 0) window.allocations = (flags & 64) != 0 ? Unit::objects : Unit::bytes;
  if (is_luajit_stream(file)) check_luajit_text(file);
  std::istringstream in(file);
  Result<Profile> profile = read_recording(in, shape, window, true);
  if (!profile) return expect_printable(profile.error().text, 1000, "an error");
  const Metadata& about = profile->about;
  expect(about.torn.empty() || !about.complete, "a damaged file is not whole");
  expect_printable(about.torn, 1000, "where a file is damaged");
  expect_printable(about.kind, 1000, "the kind of a file");
  expect_printable(about.command, 1000, "a command");
  expect(profile->samples() >= 0 && profile->weight() >= 0, "sums are not negative");
  profile->resolve_names();
  expect_plain(summary_text(*profile) + hottest_text(*profile) + functions_text(*profile, {}) +
                   lines_text(*profile, {}) + threads_text(*profile, {}),
               "reports have no control characters");
  for (const Format& format : formats()) {
    std::ostringstream out;
    if (format.write != nullptr && !refusal(format, about.unit)) format.write(*profile, {}, out);
    if (format.name == "folded") expect_plain(out.str(), "text has no control characters");
  }
}

}  // namespace luaspy::fuzz
