// Files: raw recordings and all formats that are made from them (raw), the target's source
// (source).

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attach/source_lines.h"
#include "base/text.h"
#include "fuzz.h"
#include "input/raw_reader.h"
#include "luastate/definitions.h"
#include "output/flamegraph.h"
#include "output/format.h"
#include "output/packed_recording.h"
#include "output/summary.h"
#include "profile/raw_format.h"
#include "report/call_tree.h"
#include "report/function_view.h"
#include "report/profile_diff.h"
#include "report/report_text.h"
#include "report/source_listing.h"
#include "support/raw_file.h"

namespace luaspy::fuzz {
namespace {

// Adds the checksums of blocks, which a fuzzer cannot find by itself.
std::string recording_of(std::uint8_t version, std::string_view records, std::size_t cut) {
  cut = std::min(cut, records.size());
  return raw_head(version) + raw_block(records.substr(0, cut)) + raw_block(records.substr(cut));
}

// Version 2: the unit comes first. A time of any size is what the fuzzer does not hit by itself.
std::string counted(std::string_view records, std::uint8_t choice) {
  const std::string_view unit = name(static_cast<Unit>(choice % unit_count));
  const std::string started = std::to_string((std::uint64_t{1} << choice % 64) - choice / 64);
  return raw_record(raw::about, raw_text(raw::unit_key) + raw_text(unit)) +
         raw_record(raw::about, raw_text("started_s") + raw_text(started)) + std::string(records);
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string written(const Format& format, const Profile& profile, const WriteOptions& options) {
  std::ostringstream out;
  format.write(profile, options, out);
  return out.str();
}

void check_format(const Format& format, const Profile& profile, const WriteOptions& options) {
  const std::string text = written(format, profile, options);
  if (format.name == "folded" || format.name == "callgrind") expect_plain(text, "text has no control characters");
  if (format.name == "speedscope" || format.name == "chrometrace") expect(nlohmann::json::accept(text), "JSON is JSON");
  if (format.name == "flamegraph") {
    static const std::string empty = written(format, Profile(), {});
    for (const std::string_view tag : {"</script", "<script", "<!--"})
      expect(count(text, tag) == count(empty, tag), "the page has the elements that it has of itself");
  }
}

void check_views(const Profile& profile, const TextStyle& style) {
  expect_plain(summary_text(profile) + hottest_text(profile), "summaries have no control characters");
  std::string text = functions_text(profile, style) + lines_text(profile, style) + states_text(profile, style) +
                     threads_text(profile, style);
  const FunctionTable functions = functions_of(profile, style.top % 2 == 0);
  text += call_tree_text(call_tree(profile, functions, style.by), functions, 1, style);
  for (std::uint32_t i = 0; i < functions.functions.size() && i < 3; ++i)
    text += function_text(profile, functions, function_view(profile, functions, i, style.by), style);
  for (const Frame& frame : profile.frames()) {
    if (frame.kind != Frame::Kind::lua) continue;
    text += source_listing("one\ntwo\nthree\n", line_costs(profile, frame.file, style.by),
                           total_cost(profile, style.by), style);
    break;
  }
  expect_plain(text, "reports have no control characters");
  if (style.charset == Charset::ascii)
    expect(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }), "ASCII is ASCII");
}

}  // namespace

void raw(Bytes bytes) {
  Input input(bytes);
  const auto flags = input.take<std::uint8_t>(), more = input.take<std::uint8_t>();
  const std::string_view records = input.text(1 << 20);
  ViewOptions shape;
  shape.lines = (flags & 1) != 0, shape.gc = (flags & 2) != 0, shape.vmstate = (flags & 4) != 0,
  shape.processes = (flags & 8) != 0;
  if ((flags & 16) != 0) shape.ignore = "a(b|c)*";
  RawWindow window;
  if ((flags & 32) != 0) window.from_ns = more * 1'000'000, window.to_ns = more * 3'000'000;
  const std::string recording = (flags & 64) != 0    ? std::string(records)
                                : (flags & 128) != 0 ? recording_of(raw::version, counted(records, more), more * 16)
                                                     : recording_of(raw::first_version, records, more * 16);
  std::ostringstream page_of_it;
  page_of_it << "<" << raw::page_mark;
  write_packed(recording, page_of_it);
  std::istringstream file((more & 64) != 0 && !recording.empty() ? page_of_it.str() : recording);
  Result<Profile> profile = read_raw(file, shape, window, true);
  if (!profile) return expect_printable(profile.error().text, 1000, "an error");
  profile->resolve_names();
  if ((more & 128) != 0) {
    file.clear(), file.seekg(0);
    window.allocations = Unit::bytes;
    const Result<Profile> bytes = read_raw(file, shape, window, true);
    expect(bytes.has_value(), "the allocations of a recording can be read if its samples can");
    expect_plain(collector_text(collector_cost(*profile, *bytes, By::samples), 5), "tables have no control characters");
  }
  const WriteOptions options = {(more & 1) != 0, (more & 2) != 0, Mode::merged,
                                (more & 4) != 0 ? recording : std::string_view()};
  for (const Format& format : formats()) {
    if (format.write != nullptr && !refusal(format, profile->about.unit)) check_format(format, *profile, options);
  }
  check_views(*profile, {(more & 4) != 0 ? By::weight : By::samples, 5 + more % 8,
                         (more & 8) != 0 ? Charset::ascii : Charset::utf8, profile->about.unit});
  const DiffBy by = static_cast<DiffBy>(more % 3);
  (void)match_functions(*profile, *profile);
  expect_plain(diff_text(profile_diff(*profile, *profile, {by, (more & 16) != 0}), {}),
               "differences have no control characters");
  for (const Format& format : formats()) {
    std::ostringstream compared;
    if (format.write_diff != nullptr)
      format.write_diff(*profile, *profile, {(more & 32) != 0 ? Compared::weights : Compared::shares, 4, 0.003, 0.03},
                        options, compared);
    if (format.name == "folded") expect_plain(compared.str(), "folded differences have no control characters");
  }
}

// The file belongs to this process, and is read like a file of a target.
void source(Bytes bytes) {
  Input input(bytes);
  const int line = input.take<std::int16_t>();
  const std::string_view text = input.text(1 << 16);
  static const std::string path = [] {
    std::string name = "/tmp/luaspy-fuzz-XXXXXX";
    ::close(::mkstemp(name.data()));
    std::atexit([] { (void)::unlink(path.c_str()); });
    return name;
  }();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  SourceLines lines{SourceFiles(::getpid())};
  for (const int each : {line, line + 1, 1, 2, static_cast<int>(line_starts(text).size())}) {
    if (const std::optional<SourceLine> found = lines.line(path, each))
      expect_printable(found->text, 4 * 120 + 3, "a line of source");
  }
  const std::map<int, LineCost> costs = {{line, {{1, 1}, false}}, {1, {{0, 1}, true}}};
  expect_plain(source_listing(text, costs, 2, {}), "listings have no control characters");
  const std::vector<Definition> all = definitions(text);
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect(all[i].name.size() <= longest_definition, "names of definitions are short");
    expect(all[i].parent < static_cast<int>(i), "a function is defined in one that begins before it");
  }
}

}  // namespace luaspy::fuzz
