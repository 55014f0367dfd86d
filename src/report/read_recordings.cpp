#include "report/read_recordings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/display_text.h"
#include "base/text.h"
#include "base/why_empty.h"
#include "input/recording_reader.h"
#include "profile/raw_format.h"
#include "system/progress.h"

namespace luaspy {
namespace {

Result<Profile> read_file(RecordingFile& file, const ViewOptions& shape, const RawWindow& window, bool keeps_order,
                          RawEvents* events = nullptr) {
  const std::string& path = file.path();
  std::istream* const in = file.open();
  if (in == nullptr && file.is_used_up())
    return Error{Cause::usage,
                 fmt::format("{} is a pipe with more than {} MiB, and has to be read twice for this: save "
                             "it in a file first.",
                             path, raw::most_carried >> 20)};
  if (in == nullptr) return Error{Cause::usage, fmt::format("Cannot read {}: {}.", path, file.why_not().text())};
  const std::int64_t size = file.size();
  system::ProgressLine progress;
  const auto seen = [&](std::int64_t bytes) {
    if (!progress.is_due()) return;
    const double done = static_cast<double>(bytes), all = static_cast<double>(size);
    if (size == 0) progress.show(fmt::format("reading {}: {:.0f} MB", path, done / 1e6));
    else
      progress.show(fmt::format("{}reading {}: {:.0f} of {:.0f} MB", system::progress_bar(done / all), path, done / 1e6,
                                all / 1e6));
  };
  Result<Profile> profile = read_recording(*in, shape, window, keeps_order, seen, events);
  progress.clear();
  if (!profile) return Error{profile.error().cause, fmt::format("{}: {}", path, profile.error().text)};
  profile->resolve_names();
  if (profile->waits) profile->waits->resolve_names();
  if (profile->about.command.empty()) profile->about.command = base_name(path);
  return profile;
}

// Options are seconds from the start; negative ones are from the end.
Result<RawWindow> window_of(const ReportOptions& options, RecordingFile& file) {
  RawWindow window;
  window.thread = options.thread;
  window.allocations = options.unit;
  window.live = options.leak_only;
  window.suspended = options.coroutines;
  std::int64_t duration_ns = 0;
  if (options.from.value_or(0) < 0 || options.to.value_or(0) < 0) {
    const Result<Profile> whole = read_file(file, {}, {}, false);
    if (!whole) return whole.error();
    duration_ns = whole->about.duration_ns;
  }
  const auto ns = [&](double seconds) {
    return std::max(static_cast<std::int64_t>(seconds * 1e9) + (seconds < 0 ? duration_ns : 0), std::int64_t{0});
  };
  if (options.from) window.from_ns = ns(*options.from);
  if (options.to) window.to_ns = ns(*options.to);
  if (window.to_ns && *window.to_ns <= window.from_ns) return Error{Cause::usage, "--to is not after --from."};
  return window;
}

// Why there is nothing to report.
Error nothing(const ReportOptions& options, RecordingFile& file, const Profile& profile) {
  const std::string& path = file.path();
  if (profile.waits && profile.waits->samples() != 0 && !is_narrowed(options))
    return {Cause::no_samples, fmt::format("{}: nothing ran there; what waited is shown by --coroutines.", path)};
  if (profile.losses(Loss::left_out) != 0)
    return {Cause::no_samples,
            fmt::format("{}: {} leave no sample.", path,
                        options.shape.labels.empty() ? "--only and --ignore" : "--only, --ignore and --label")};
  const Result<Profile> whole = read_file(file, {}, {}, false);
  if (!whole) return {Cause::no_samples, fmt::format("{} has no samples.", path)};
  const Metadata& about = whole->about;
  if (whole->samples() == 0 && !about.kind.empty())
    return {Cause::no_samples,
            fmt::format("{} has no samples{}{}.", path, about.torn.empty() ? "" : ". It is damaged: ", about.torn)};
  if (whole->samples() == 0) {
    EmptyFacts facts{static_cast<double>(about.duration_ns) / 1e9,
                     whole->idle(),
                     whole->waiting(),
                     {},
                     about.cpu.lua_ns + about.cpu.unknown_ns};
    for (std::size_t i = 0; i < loss_count; ++i) facts.losses[i] = whole->losses(static_cast<Loss>(i));
    return {Cause::no_samples, fmt::format("{} has no samples: {}.{}", path, why_empty(facts),
                                           about.complete ? "" : " The recording was cut off.")};
  }
  if (options.thread.empty() && !about.timed)
    return {Cause::no_samples, fmt::format("{} does not say when its samples were: leave out --from and --to.", path)};
  if (options.thread.empty())
    return {Cause::no_samples, fmt::format("{} has no samples between --from and --to; it lasts {:.2f} s.", path,
                                           static_cast<double>(whole->about.duration_ns) / 1e9)};
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(whole->threads().size(), 8); ++i) {
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", whole->threads()[i].tid,
                         displayable(whole->threads()[i].name, Charset::ascii));
  }
  return {Cause::no_samples, fmt::format("{}: no samples of a thread {}. Its threads: {}", path,
                                         displayable(options.thread, Charset::ascii), names)};
}

}  // namespace

bool is_narrowed(const ReportOptions& options) {
  return options.from || options.to || !options.thread.empty() || !options.shape.only.empty() ||
         !options.shape.labels.empty() || !options.shape.ignore.empty();
}

Error no_allocations(const std::string& path) {
  return {Cause::no_samples,
          fmt::format("{} has no samples of allocations. `luaspy record --alloc` takes them.", path)};
}

namespace {

Error no_coroutines(const std::string& path, bool of_part) {
  return {Cause::no_samples, fmt::format("{} has no looks at suspended coroutines{}", path,
                                         of_part ? " in this part." : ". `luaspy record --coroutines` takes them.")};
}

}  // namespace

Result<Profile> read_for(const ReportOptions& options, RecordingFile& file, const ViewOptions& shape, bool keeps_order,
                         RawEvents* events) {
  const Result<RawWindow> window = window_of(options, file);
  if (!window) return window.error();
  Result<Profile> profile = read_file(file, shape, *window, keeps_order, events);
  if (profile && options.unit && profile->about.unit != *options.unit)
    return Error{Cause::usage,
                 fmt::format("{} counts {}, and not {}.", file.path(), name(profile->about.unit), name(*options.unit))};
  if (profile && options.unit && profile->samples() == 0 && !is_narrowed(options)) return no_allocations(file.path());
  if (profile && options.coroutines && profile->suspended.looks == 0)
    return no_coroutines(file.path(), is_narrowed(options));
  if (profile && options.coroutines && profile->samples() == 0)
    return Error{Cause::no_samples, fmt::format("{}: no suspended coroutine was seen there.", file.path())};
  if (profile && profile->samples() == 0) return nothing(options, file, *profile);
  return profile;
}

RecordingFiles files_of(const ReportOptions& options) {
  RecordingFiles files;
  for (const std::string& path : options.files) files.emplace_back(path);
  return files;
}

Result<Profile> read_all(const ReportOptions& options, RecordingFiles& files, const ViewOptions& shape,
                         bool keeps_order) {
  if (files.size() == 1 && !options.by_file) return read_for(options, files.front(), shape, keeps_order);
  Profile all(false, shape.cpus);
  for (RecordingFile& file : files) {
    const Result<Profile> profile = read_for(options, file, shape, false);
    if (!profile) return profile.error();
    const Unit unit = all.about.unit;
    if (all.samples() != 0 && profile->about.unit != unit)
      return Error{Cause::usage,
                   fmt::format("{} counts {}, {} counts {}: they cannot be added up.", options.files.front(),
                               name(unit), file.path(), name(profile->about.unit))};
    all.add_all(*profile, options.by_file ? std::optional(marker(fmt::format("[{}]", file.path()))) : std::nullopt);
  }
  all.resolve_names();
  return all;
}

}  // namespace luaspy
