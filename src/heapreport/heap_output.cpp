#include "heapreport/heap_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/say.h"
#include "base/text.h"
#include "heapdump/heap_file.h"
#include "heapdump/heap_jsonl.h"
#include "heapdump/heap_page.h"
#include "heapdump/heap_profile.h"
#include "heapdump/heapsnapshot.h"
#include "output/write_options.h"

namespace luaspy {
namespace {

constexpr std::string_view page_format = "html";
constexpr std::array own_formats = {
    Format{"luaheap", ".luaheap", "", "look again with: luaspy heap FILE", Shows::sums, nullptr, nullptr, false, false,
           true},
    Format{page_format, ".html", "", "open it in a browser", Shows::sums, nullptr},
    Format{"heapsnapshot", ".heapsnapshot", "", "load it in Chrome: DevTools, Memory, Load profile", Shows::sums,
           nullptr},
    Format{"jsonl", ".jsonl", "", "jq, or any program that reads JSON lines: FILE", Shows::sums, nullptr},
};

// Those of profiles that can show a heap. The page of a profile tells of calls and samples.
std::vector<const Format*> profile_formats() {
  std::vector<const Format*> those;
  for (const Format& format : formats()) {
    if (format.write != nullptr && !format.carries_recording && !refusal(format, Unit::bytes)) those.push_back(&format);
  }
  return those;
}

std::vector<const Format*> all_formats() {
  std::vector<const Format*> all = profile_formats();
  for (const Format& format : own_formats) all.push_back(&format);
  return all;
}

Result<const Format*> format_of(const std::string& path, const std::string& name) {
  const std::vector<const Format*> all = all_formats();
  const auto named = std::ranges::find(all, name, [](const Format* each) { return each->name; });
  if (named != all.end()) return *named;
  std::vector<std::string> endings;
  for (const Format* const format : all) {
    if (path.ends_with(format->extension)) return format;
    endings.emplace_back(format->extension);
  }
  if (base_name(path).find('.') == std::string::npos && path != "-") return &own_formats.front();
  return Error{Cause::usage, fmt::format("{}: say with -f what it is to be: {}. Without -f, these endings say it: {}.",
                                         printable(path), joined(heap_format_names(), ", "), joined(endings, ", "))};
}

PageHeap page_heap(const HeapSnapshot& snapshot, const Analyses& analyses) {
  PageHeap heap{&snapshot, {}};
  for (const auto& analysis : analyses) heap.states.push_back(analysis.get());
  return heap;
}

}  // namespace

std::vector<std::string> heap_format_names() {
  std::vector<std::string> names;
  for (const Format* const format : all_formats()) names.emplace_back(format->name);
  return names;
}

Result<HeapOutput> HeapOutput::open(const std::string& path, const std::string& name) {
  const Result<const Format*> format = format_of(path, name);
  if (!format) return format.error();
  Result<OutputFile> file = OutputFile::open(path, **format);
  if (!file) return file.error();
  return HeapOutput(std::move(*file));
}

bool HeapOutput::is_snapshot() const { return file_.format().name == own_formats.front().name; }

Result<void> HeapOutput::write_snapshot(const HeapSnapshot& snapshot, const std::vector<AddressRange>& ranges) {
  write_heap_file(file_.stream(), snapshot, ranges);
  return file_.finish();
}

Result<void> HeapOutput::write(const HeapSnapshot& snapshot, const Analyses& analyses,
                               const std::function<void(double)>& told) {
  std::vector<const HeapAnalysis*> known;
  for (const auto& analysis : analyses) {
    if (analysis->is_known()) known.push_back(analysis.get());
  }
  if (file_.format().write != nullptr) {
    file_.format().write(heap_profile(snapshot, known), {}, file_.stream());
  } else if (file_.format().name == page_format) {
    write_heap_page({page_heap(snapshot, analyses)}, file_.stream());
  } else if (file_.format().name == "jsonl") {
    write_heap_jsonl(known, told, file_.stream());
  } else {
    const Result<HeapsnapshotSizes> sizes = write_heapsnapshot(known, told, file_.stream());
    if (!sizes) return sizes.error();
    say("{}", to_text(*sizes));
  }
  return file_.finish();
}

Result<void> HeapOutput::can_compare() const {
  if (file_.format().name == page_format) return {};
  return Error{Cause::usage,
               fmt::format("Only {} shows what has changed; {} shows one heap.", page_format, file_.format().name)};
}

Result<void> HeapOutput::write_difference(const HeapSnapshot& before, const Analyses& of_before,
                                          const HeapSnapshot& after, const Analyses& of_after) {
  write_heap_page({page_heap(before, of_before), page_heap(after, of_after)}, file_.stream());
  return file_.finish();
}

}  // namespace luaspy
