#include "report/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "base/doubts.h"
#include "base/say.h"
#include "base/text.h"
#include "input/page_recording.h"
#include "input/raw_reader.h"
#include "input/source_stream.h"
#include "output/comparison.h"
#include "output/output_file.h"
#include "output/summary.h"
#include "output/write_options.h"
#include "profile/raw_format.h"
#include "report/call_tree.h"
#include "report/function_view.h"
#include "report/luajit_text.h"
#include "report/profile_diff.h"
#include "report/raw_part.h"
#include "report/read_recordings.h"
#include "report/recording_file.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/source_listing.h"
#include "report/suspended_text.h"
#include "system/calls.h"
#include "system/standard_output.h"
#include "system/terminal.h"
#include "system/written_file.h"

namespace luaspy {
namespace {

// The exit status that says so (docs/exit-codes.md): something was found, and nothing has failed.
constexpr int slower_status = 12;

// Whether a run has become slower than another one, for a script that must fail then: the functions that take more than
// `percent` more time than before, beyond chance, as texts: "join (a.lua:3) +38 %". One that is new counts if it takes
// that part of the time of the whole run before.
std::vector<std::string> slower(const ProfileDiff& diff, double percent) {
  double whole = 0;
  for (const ProfileDiff::Row& row : diff.rows) whole += row.before;
  std::vector<std::string> texts;
  for (const ProfileDiff::Row& row : diff.rows) {
    const bool is_new = row.verdict == ProfileDiff::Verdict::appeared;
    if (row.verdict != ProfileDiff::Verdict::slower && !is_new) continue;
    const double more = 100 * (is_new ? row.after / whole : row.difference() / row.before);
    if (more > percent)
      texts.push_back(fmt::format("{} {}", row.after_text, is_new ? "(new)" : fmt::format("{:+.0f} %", more)));
  }
  return texts;
}

std::string names_of(const ReportOptions& options) { return joined(options.files, ", "); }

bool is_to_stdout(const ReportOptions& options) { return options.output.empty() || options.output == "-"; }

TextStyle style_of(const ReportOptions& options, Unit unit) {
  const bool is_usual = options.by.empty() || options.by_label();
  const By by = is_usual && options.coroutines ? By::weight
                : is_usual                     ? usual_by(unit)
                : options.by == "samples"      ? By::samples
                                               : By::weight;
  const bool coloured = is_to_stdout(options) && system::terminal_of(1).colours;
  return {by, options.top, system::charset_of_locale(), unit, Paint(coloured)};
}

// The recording's name without the usual extension.
std::string stem_of(const std::string& path) {
  if (path == "-") return "luaspy-profile";
  std::string name = std::filesystem::path(path).filename().string();
  for (const Format& format : formats()) {
    const bool is_recording = format.write == nullptr || format.carries_recording;
    if (is_recording && name.ends_with(format.extension) && name.size() > format.extension.size())
      name.resize(name.size() - format.extension.size());
  }
  return name;
}

std::string carried(const ReportOptions& options, RecordingFiles& files, const Format& format) {
  if (!format.carries_recording || is_narrowed(options) || options.unit || options.coroutines || files.size() != 1)
    return {};
  std::istream* const in = files.front().open();
  std::string bytes = in != nullptr ? raw_bytes(*in, raw::most_carried) : std::string();
  return bytes.starts_with(raw::magic) ? bytes : std::string();  // not a file of another kind
}

std::string torn_text(const std::string& torn) {
  return fmt::format("  the file is damaged: {}; this is what comes before\n", printable(torn));
}

// Writes what was asked for of a recording, as a recording.
Result<int> write_part(const ReportOptions& options) {
  RecordingFile file(options.files.front());
  Result<OutputFile> output = OutputFile::open({options.output, "raw", stem_of(options.files.front()) + "-part"});
  if (!output) return output.error();
  RawPart part(output->stream(), options.thread.empty());
  const Result<Profile> profile = read_for(options, file, options.shape, false, &part);
  if (!profile) {
    output->discard();
    return profile.error();
  }
  if (part.has_too_many()) {
    output->discard();
    return Error{Cause::usage,
                 fmt::format("{} has more than {} samples, each of which -f raw would write. Other formats keep "
                             "their number.",
                             options.files.front(), RawPart::most_samples)};
  }
  const Result<void> finished = output->finish();
  if (!finished) return finished.error();
  if (!output->to_stdout()) say("luaspy: written: {}\n  next: {}\n", output->path(), output->next_step());
  return 0;
}

// Writes the raw recording that a page carries.
Result<int> extract(const ReportOptions& options) {
  if (options.files.size() > 1)
    return Error{Cause::usage, "-f raw writes one recording; several are added up in the other formats."};
  if (options.coroutines)
    return Error{Cause::usage, "-f raw writes what ran and suspended coroutines together: leave out --coroutines."};
  if (options.unit) return Error{Cause::usage, "-f raw writes time and allocations together: leave out --unit."};
  if (is_narrowed(options)) return write_part(options);
  RecordingFile file(options.files.front());
  const Result<Profile> profile = read_for(options, file, {}, false);
  if (!profile) return profile.error();
  std::istream* const in = file.open();
  if (!profile->about.kind.empty()) return write_part(options);
  if (in != nullptr && !is_page(*in))
    return Error{Cause::usage, "The recording is already in the raw format: report converts it to other formats."};
  const std::string recording = in != nullptr ? raw_bytes(*in, raw::most_carried) : std::string();
  if (recording.empty())
    return Error{Cause::usage, fmt::format("{}: the recording in this page has more than {} MiB, more than luaspy ever "
                                           "writes. It was not extracted.",
                                           options.files.front(), raw::most_carried >> 20)};
  Result<OutputFile> output = OutputFile::open({options.output, "raw", stem_of(options.files.front())});
  if (!output) return output.error();
  output->stream() << recording;
  const Result<void> finished = output->finish();
  if (!finished) return finished.error();
  if (!output->to_stdout()) say("luaspy: written: {}\n  next: {}\n", output->path(), output->next_step());
  return 0;
}

Result<int> write_format(const ReportOptions& options, const Format& format) {
  if (format.write == nullptr) return extract(options);
  const ViewOptions shape = shape_for(format, options.shape);
  if (options.files.size() > 1 && format.shows == Shows::time)
    return Error{Cause::usage,
                 fmt::format("{} shows what ran when, which several recordings do not have.", format.name)};
  RecordingFiles files = files_of(options);
  const Result<Profile> profile = read_all(options, files, shape, format.needs_order());
  if (!profile) return profile.error();
  if (const std::optional<Error> refused = refusal(format, profile->about.unit)) return *refused;
  if (format.shows == Shows::time && options.coroutines)
    return Error{Cause::usage,
                 fmt::format("{} shows suspended coroutines beside what ran: leave out --coroutines.", format.name)};
  if (format.shows == Shows::time && !profile->about.timed)
    return Error{Cause::usage,
                 fmt::format("{} shows what ran when, which {} does not say.", format.name, names_of(options))};
  if (!profile->about.torn.empty()) say("luaspy: {}:\n{}", names_of(options), torn_text(profile->about.torn));
  const std::string recording = carried(options, files, format);
  // Opened after the recording was read, so that nothing is overwritten if that fails.
  Result<OutputFile> output = OutputFile::open(
      {options.output, std::string(format.name), stem_of(options.files.front())});
  if (!output) return output.error();
  const Result<void> written = output->write(*profile,
                                             {options.shape.lines, options.threads, options.shape.mode, recording});
  if (!written) return written.error();
  if (!output->to_stdout()) say("luaspy: written: {}\n  next: {}\n", output->path(), output->next_step());
  return 0;
}

// `width`: of the terminal, for text for people; 0: as it is.
Result<int> write_text(const ReportOptions& options, const std::string& text, int width) {
  const bool to_stdout = is_to_stdout(options);
  if (!to_stdout) {
    const Result<void> written = system::write_file(options.output, [&](std::ostream& out) { out << text; });
    if (!written) return written.error();
    return 0;
  }
  constexpr int beside_columns = 36;  // functions that are wider than the terminal go on there
  std::cout << wrapped(text, width, beside_columns);
  const Result<void> written = system::flush_standard_output("the report");
  if (!written) return written.error();
  return 0;
}

bool is_luajit_text(const std::string& format) { return format == "memprof" || format == "sysprof"; }

// What the parsers of LuaJIT's own profilers print.
Result<int> write_luajit_text(const ReportOptions& options) {
  if (options.files.size() != 1 || is_narrowed(options))
    return Error{Cause::usage, fmt::format("-f {} is of one file, and of all of it.", options.format)};
  RecordingFile file(options.files.front());
  std::istream* const in = file.open();
  if (in == nullptr) return Error{Cause::usage, fmt::format("Cannot read {}: {}.", file.path(), file.why_not().text())};
  UnpackedFile unpacked(*in);
  std::string torn;
  const Result<std::string> text = options.format == "memprof"
                                       ? memprof_text(unpacked.bytes(), {options.leak_only, options.human_readable},
                                                      torn)
                                       : sysprof_text(unpacked.bytes(), torn);
  if (!text) return Error{text.error().cause, fmt::format("{}: {}", file.path(), text.error().text)};
  if (!torn.empty()) say("luaspy: {}:\n{}", file.path(), torn_text(torn));
  return write_text(options, *text, 0);
}

std::string head(const ReportOptions& options, const Profile& profile, const TextStyle& style) {
  std::string text = displayable(profile.about.command, style.charset) + ": ";
  std::istringstream summary(summary_text(profile));
  for (std::string line; std::getline(summary, line);) text += displayable(line, style.charset, line.size()) + '\n';
  if (!profile.about.torn.empty()) text += torn_text(profile.about.torn);
  else if (!profile.about.complete) text += "  the recording was cut off; this is what had been written by then\n";
  constexpr int further_in = 2;
  return is_to_stdout(options) ? wrapped(text, system::terminal_of(1).width, further_in) : text;
}

Result<std::string> functions_view(const ReportOptions& options, const Profile& profile, const TextStyle& style) {
  constexpr std::size_t most = 10;  // functions that match
  const FunctionTable functions = functions_of(profile, false);
  const auto found = find_functions(functions, costs(profile, functions, style.by), options.function);
  if (!found) return found.error();
  std::string text;
  for (std::size_t i = 0; i < std::min(found->size(), most); ++i) {
    text += (i == 0 ? "" : "\n") +
            function_text(profile, functions, function_view(profile, functions, (*found)[i], style.by), style);
  }
  if (found->size() > most) text += fmt::format("\n{} more functions match\n", found->size() - most);
  return text;
}

Result<std::string> source_view(const ReportOptions& options, const Profile& profile, const TextStyle& style) {
  const Result<std::string> file = find_source(profile, options.source);
  if (!file) return file.error();
  const std::string path = !options.source_path.empty()           ? options.source_path
                           : options.source.size() > file->size() ? options.source
                                                                  : *file;
  const auto carried = profile.sources.find(*file);
  const bool is_carried = options.source_path.empty() && carried != profile.sources.end();
  bool younger = is_carried && carried->second.changed;
  const Result<std::string> text = is_carried ? carried->second.text
                                              : read_source(path, profile.about.started_s, younger);
  if (!text) return text.error();
  std::string view = displayable(*file, style.charset) +
                     (!is_carried && path != *file ? ", as in " + displayable(path, style.charset) : "") + "\n";
  if (younger) {
    view += fmt::format("The file was written after the {} began: its lines may differ from those that ran.\n",
                        is_carried ? "program" : "recording");
  }
  return view + source_listing(*text, line_costs(profile, *file, style.by), total_cost(profile, style.by), style);
}

std::string tree_view(const ReportOptions& options, const Profile& profile, const TextStyle& style) {
  const FunctionTable functions = functions_of(profile, options.shape.lines);
  return call_tree_text(call_tree(profile, functions, style.by), functions, options.least, style);
}

Result<std::string> collector_view(const ReportOptions& options, RecordingFiles& files, const Profile& time,
                                   const TextStyle& style) {
  if (time.about.unit != Unit::nanoseconds) return no_allocations(names_of(options));
  ReportOptions of_bytes = options;
  of_bytes.unit = Unit::bytes;
  const Result<Profile> bytes = read_all(of_bytes, files, options.shape, false);
  if (!bytes) return bytes.error();
  return collector_text(collector_cost(time, *bytes, style.by), style.top, style.charset);
}

Result<std::string> labels_view(const ReportOptions& options, const Profile& profile, const TextStyle& style) {
  std::optional<std::string> text = labels_text(profile, options.by, style);
  if (text) return std::move(*text);
  std::set<std::string> names;
  for (const Labels& labels : profile.labels()) {
    for (const SampleLabel& label : labels) names.insert(label.name);
  }
  return Error{Cause::usage,
               fmt::format("--by {}: no sample has such a label. {} Or --by samples, --by time.", printable(options.by),
                           names.empty() ? std::string("This recording has none; luaspy record --label makes them.")
                                         : fmt::format("There {}: {}.", names.size() == 1 ? "is" : "are",
                                                       joined(std::vector(names.begin(), names.end()), ", ")))};
}

Result<int> write_views(const ReportOptions& options) {
  ViewOptions shape = options.shape;
  shape.lines = true;
  RecordingFiles files = files_of(options);
  const Result<Profile> profile = read_all(options, files, shape, false);
  if (!profile) return profile.error();
  // No coroutine that waits is of a thread; with labels there may be none.
  const bool has_waits = options.thread.empty() && profile->waits &&
                         (options.shape.labels.empty() || profile->waits->samples() != 0);
  const Profile* const waits = options.coroutines ? &*profile : has_waits ? profile->waits.get() : nullptr;
  if (options.json) return write_text(options, profile_json(names_of(options), *profile, waits), 0);
  const TextStyle style = style_of(options, profile->about.unit);
  std::string text;
  const auto add = [&](const std::string& view) { text += (text.empty() || view.empty() ? "" : "\n") + view; };
  if (!options.function.empty()) {
    const Result<std::string> view = functions_view(options, *profile, style);
    if (!view) return view.error();
    add(*view);
  }
  if (!options.source.empty()) {
    const Result<std::string> view = source_view(options, *profile, style);
    if (!view) return view.error();
    add(*view);
  }
  if (options.collector) {
    const Result<std::string> view = collector_view(options, files, *profile, style);
    if (!view) return view.error();
    add(*view);
  }
  if (options.tree) add(tree_view(options, *profile, style));
  if (options.states) add(states_text(*profile, style));
  if (options.by_thread) add(threads_text(*profile, style));
  if (options.by_label()) {
    const Result<std::string> view = labels_view(options, *profile, style);
    if (!view) return view.error();
    add(*view);
  }
  if (text.empty()) {
    if (options.coroutines) {
      add(suspended_text(*profile, style));
      return write_text(options, text, system::terminal_of(1).width);
    }
    add(head(options, *profile, style));
    if (const std::string heaps = heaps_text(*profile, style); !heaps.empty()) add(heaps);
    add(functions_text(*profile, style));
    add(lines_text(*profile, style));
    if (waits != nullptr) add(suspended_text(*waits, style));
  }
  return write_text(options, text, system::terminal_of(1).width);
}

std::string doubts_text(const Profile& profile) {
  std::string text;
  for (const std::string& doubt : doubts(profile.doubt_facts())) text += fmt::format("  doubtful: {}\n", doubt);
  if (!profile.about.torn.empty()) text += torn_text(profile.about.torn);
  return text;
}

// Two recordings of the same unit, in which the same functions have the same names.
struct BothProfiles {
  Profile before, after;
  FunctionMatching matching;
};

Result<BothProfiles> read_both(const ReportOptions& options, RecordingFile& file_before, RecordingFile& file_after,
                               const ViewOptions& shape, bool keeps_order) {
  Result<Profile> before = read_for(options, file_before, shape, keeps_order);
  if (!before) return before.error();
  Result<Profile> after = read_for(options, file_after, shape, keeps_order);
  if (!after) return after.error();
  if (before->about.unit != after->about.unit) {
    return Error{Cause::usage, fmt::format("{} counts {}, {} counts {}: they cannot be compared.", options.diff[0],
                                           name(before->about.unit), options.diff[1], name(after->about.unit))};
  }
  FunctionMatching matching = match_functions(*before, *after);
  return BothProfiles{std::move(*before), std::move(*after), std::move(matching)};
}

std::string diff_view(const ReportOptions& options, const BothProfiles& both, const ProfileDiff& diff) {
  const TextStyle style = style_of(options, both.after.about.unit);
  return fmt::format("before: {}\n", displayable(options.diff[0], style.charset)) + doubts_text(both.before) +
         fmt::format("after:  {}\n", displayable(options.diff[1], style.charset)) + doubts_text(both.after) +
         diff_text(diff, style);
}

// For a script: the exit status.
int judged(const ProfileDiff& diff, double percent) {
  constexpr std::size_t most = 5;
  if (!diff.can_tell) {
    say("luaspy: The recordings are too short to tell what became slower.\n");
    return 0;
  }
  std::vector<std::string> functions = slower(diff, percent);
  if (functions.empty()) return 0;
  const std::size_t count = functions.size();
  if (count > most) functions.resize(most), functions.push_back(fmt::format("and {} more", count - most));
  say("luaspy: Slower by more than {:g} %: {}.\n", percent, printable(joined(functions, ", "), 1 << 12));
  return slower_status;
}

// Which formats can show a difference.
Error no_diff(const Format& format) {
  std::string names;
  for (const Format& other : formats()) names += other.write_diff != nullptr ? fmt::format(", {}", other.name) : "";
  return {Cause::usage, fmt::format("A difference cannot be written as {}, only as text{}.", format.name, names)};
}

Comparison comparison_of(const ProfileDiff& diff, FunctionMatching matching) {
  constexpr double nothing_is_beyond = 1e6;
  const DiffBy by = diff.options.by;
  return {by == DiffBy::shares   ? Compared::shares
          : by == DiffBy::weight ? Compared::rates
                                 : Compared::weights,
          diff.can_tell ? diff.noise : nothing_is_beyond,
          least_difference,
          least_ratio,
          std::move(matching.moved),
          std::move(matching.ambiguous)};
}

Result<int> write_diff(const ReportOptions& options, const Format* format) {
  const bool by_run = options.by == "run" || (options.by.empty() && options.fail_if_slower);
  const DiffOptions by = {options.by == "time" ? DiffBy::weight : by_run ? DiffBy::run : DiffBy::shares, options.total};
  if (format != nullptr && format->write_diff == nullptr) return no_diff(*format);
  RecordingFile file_before(options.diff[0]), file_after(options.diff[1]);
  Result<BothProfiles> both = read_both(options, file_before, file_after, options.shape, true);
  if (!both) return both.error();
  const ProfileDiff diff = profile_diff(both->before, both->after, by, both->matching);
  if (format == nullptr) {
    const std::string text = options.json ? diff_json(options.diff[0], both->before, options.diff[1], both->after, diff)
                                          : diff_view(options, *both, diff);
    const Result<int> written = write_text(options, text, options.json ? 0 : system::terminal_of(1).width);
    return written && options.fail_if_slower ? judged(diff, *options.fail_if_slower) : written;
  }
  // A page has all frames, so that it can show any of them; what is chance is known of what the text has.
  Result<BothProfiles> shown = format->carries_recording ? read_both(options, file_before, file_after,
                                                                     shape_for(*format, options.shape), false)
                                                         : std::move(both);
  if (!shown) return shown.error();
  for (const std::string& sentence : diff.ambiguous)
    say("luaspy: {}\n", displayable(sentence, system::charset_of_locale()));
  const bool is_lines = format->name == "folded";  // which go to the next program
  Result<OutputFile> output = OutputFile::open({options.output.empty() && is_lines ? "-" : options.output,
                                                std::string(format->name),
                                                stem_of(options.diff[0]) + "-" + stem_of(options.diff[1])});
  if (!output) return output.error();
  format->write_diff(shown->before, shown->after, comparison_of(diff, std::move(shown->matching)),
                     {options.shape.lines, options.threads, options.shape.mode}, output->stream());
  const Result<void> finished = output->finish();
  if (!finished) return finished.error();
  if (!output->to_stdout()) say("luaspy: written: {}\n  next: {}\n", output->path(), output->next_step());
  return 0;
}

}  // namespace

Result<int> report(const ReportOptions& options) {
  if (is_luajit_text(options.format)) return write_luajit_text(options);
  const bool as_text = options.json || (options.format.empty() && options.output.ends_with(text_ending));
  const Result<const Format*> format = as_text ? nullptr : choose_format(options.format, options.output, nullptr);
  if (!format) return format.error();
  if (!options.diff.empty()) return write_diff(options, *format);
  const bool has_view = !options.function.empty() || options.tree || !options.source.empty() || options.states ||
                        options.by_thread || options.collector || options.by_label();
  if (*format != nullptr && has_view)
    return Error{
        Cause::usage,
        fmt::format("--function, --tree, --source, --states, --collector, --by-thread and --by LABEL are text: "
                    "let the name of the file end in {}, or leave the option out.",
                    text_ending)};
  return *format != nullptr ? write_format(options, **format) : write_views(options);
}

}  // namespace luaspy
