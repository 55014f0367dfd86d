#include "report/report_json.h"

#include <array>
#include <cmath>

#include "base/doubts.h"
#include "base/hex.h"
#include "base/json.h"
#include "profile/coverage.h"
#include "profile/doing.h"
#include "profile/function_table.h"
#include "profile/mark_text.h"
#include "profile/recorded.h"
#include "profile/suspended_profile.h"
#include "report/suspended_text.h"

namespace luaspy {
namespace {

// Changes that a reader would misread need another one; new fields do not.
constexpr int version = 1;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string_view kind_of(const Frame& frame) {
  constexpr std::array<std::string_view, 5> kinds = {"lua", "c", "native", "marker", "kernel"};
  return kinds[static_cast<std::size_t>(frame.kind)];
}

Json lost(const Profile& profile) {
  Json json = Json::object();
  for (std::size_t i = 1; i < loss_count; ++i) {
    const auto loss = static_cast<Loss>(i);
    if (profile.losses(loss) != 0) json[name(loss)] = profile.losses(loss);
  }
  return json;
}

Json recording(const std::string& file, const Profile& profile) {
  const Metadata& about = profile.about;
  Json json = {{"file", file},
               {"luaspy", about.luaspy},
               {"command", about.command},
               {"executable", about.executable},
               {"pid", about.pid},
               {"lua", about.luas},
               {"started", about.started_s},
               {"seconds", seconds(about.duration_ns)},
               {"complete", about.complete},
               {"mode", about.mode},
               {"rate_hz", about.rate},
               {"unit", name(about.unit)},
               {"samples", profile.samples()},
               {"weight", profile.weight()},
               {"idle", profile.idle()},
               {"waiting_for_cpu", profile.waiting()},
               {"lost", lost(profile)}};
  if (profile.sleepers().threads != 0) json["threads_left_out"] = profile.sleepers().threads;
  if (!about.kind.empty()) json["kind"] = about.kind;
  if (!about.torn.empty()) json["torn"] = about.torn;
  if (about.unit == Unit::nanoseconds && about.cpu.lua_ns + about.cpu.unknown_ns != 0)
    json["cpu_seconds"] = seconds(about.cpu.lua_ns + about.cpu.unknown_ns);
  if (const std::optional<double> covered = coverage(about.cpu, about.sampled_cpu_ns);
      covered && about.unit == Unit::nanoseconds)
    json["coverage_percent"] = std::round(*covered * 10) / 10;
  json["doubts"] = doubts(profile.doubt_facts());
  return json;
}

// Own and total, in samples and in what they weigh.
void add_costs(const Cost& samples, const Cost& weight, Json& json) {
  json["own_samples"] = samples.own;
  json["total_samples"] = samples.total;
  json["own"] = weight.own;
  json["total"] = weight.total;
}

Json functions(const Profile& profile, bool lines) {
  const FunctionTable table = functions_of(profile, lines);
  const std::vector<Cost> samples = costs(profile, table, By::samples), weight = costs(profile, table, By::weight);
  Json json = Json::array();
  for (const std::uint32_t at : most_expensive(usual_by(profile.about.unit) == By::samples ? samples : weight, table)) {
    const Frame& frame = table.functions[at];
    if (samples[at].total == 0 || (lines && (frame.kind != Frame::Kind::lua || frame.line <= 0))) continue;
    Json one = {{"text", table.texts[at]}, {"name", frame.name}, {"kind", kind_of(frame)}};
    if (!frame.file.empty()) one["file"] = frame.file;
    if (frame.kind == Frame::Kind::lua) one["line_defined"] = frame.line_defined;
    if (lines) one["line"] = frame.line;
    if (lines && frame.line_is_near) one["line_is_near"] = true;
    add_costs(samples[at], weight[at], one);
    json.add(std::move(one));
  }
  return json;
}

Json states(const Profile& profile) {
  const Doings samples = doings_of(profile, By::samples), weight = doings_of(profile, By::weight);
  Json json = Json::array();
  for (const Doing doing : samples.order())
    json.add({{"state", names(doing).name}, {"samples", samples[doing]}, {"weight", weight[doing]}});
  return json;
}

Json threads(const Profile& profile) {
  Json json = Json::array();
  for (std::uint32_t at = 0; at < profile.threads().size(); ++at) {
    const ThreadInfo& thread = profile.threads()[at];
    Profile::Amount all;
    for (const auto& [stack, amount] : profile.stack_counts(at)) all += amount;
    json.add({{"pid", process_of(profile, thread)},
              {"tid", thread.tid},
              {"name", thread.name},
              {"process", command_of(profile, thread)},
              {"samples", all.samples},
              {"weight", all.weight}});
  }
  return json;
}

// By name, and of each its values.
Json labels(const Profile& profile) {
  std::map<std::pair<std::string_view, std::string_view>, Profile::Amount> amounts;
  for (const auto& [at, amount] : profile.counts()) {
    for (const SampleLabel& label : profile.labels()[profile.situations()[at.situation].labels])
      amounts[{label.name, label.value}] += amount;
  }
  Json json = Json::object();
  for (const auto& [label, amount] : amounts)
    json[label.first].add({{"value", label.second}, {"samples", amount.samples}, {"weight", amount.weight}});
  return json;
}

Json heaps(const Profile& profile) {
  Json json = Json::array();
  for (const HeapTracks::Of& heap : profile.heaps.states()) {
    const std::optional<HeapSummary> summary = heap.track.summary(profile.about.duration_ns);
    if (!summary) continue;
    Json one = {{"pid", heap.state.pid},
                {"global_state", hex(heap.state.G)},
                {"last_bytes", summary->last},
                {"least_bytes", summary->least},
                {"most_bytes", summary->most}};
    if (summary->growth) one["growth_bytes_per_second"] = std::llround(*summary->growth);
    if (summary->cycles) one["cycles_per_second"] = *summary->cycles;
    json.add(std::move(one));
  }
  return json;
}

// What LuaJIT's compiler did, if it was watched.
Json compiler(const Profile& profile) {
  const std::array<std::int64_t, mark_kinds> counts = counts_of(profile.marks);
  const auto count = [&](Mark::Kind kind) { return counts[static_cast<std::size_t>(kind)]; };
  return {{"aborts", count(Mark::Kind::abort)},
          {"blacklisted", count(Mark::Kind::blacklisted)},
          {"flushes", count(Mark::Kind::flush)},
          {"traces", count(Mark::Kind::trace)}};
}

// Those that were suspended, if they were looked at.
Json coroutines(const Profile& profile) {
  const SuspendedCounts& counts = profile.suspended;
  Json json = {{"looks", counts.looks},
               {"seconds", seconds(counts.looked_ns)},
               {"average", average_suspended(profile)},
               {"most", counts.most},
               {"unread", counts.unread},
               {"places", Json::array()}};
  for (const SuspendedRow& row : suspended_rows(profile)) {
    Json stack = Json::array();
    for (const FrameId frame : profile.stack(row.stack)) stack.add(describe(profile.frames()[frame], true));
    json["places"].add({{"began", row.began},
                        {"stack", std::move(stack)},
                        {"average", row.average},
                        {"most", row.most},
                        {"longest_seconds", seconds(row.longest_ns)}});
  }
  return json;
}

std::string_view word(ProfileDiff::Verdict verdict) {
  constexpr std::array<std::string_view, 7> words = {"none", "perhaps", "more", "less", "like others", "new", "gone"};
  return words[static_cast<std::size_t>(verdict)];
}

Json row_of(const ProfileDiff::Row& row) {
  const auto text = [](const std::string& function) { return function.empty() ? Json() : Json(function); };
  Json json = {{"function_before", text(row.before_text)},
               {"function_after", text(row.after_text)},
               {"before", row.before},
               {"after", row.after},
               {"interval", row.interval},
               {"verdict", word(row.verdict)}};
  if (row.verdict == ProfileDiff::Verdict::perhaps) json["needed_samples"] = row.needed;
  return json;
}

}  // namespace

std::string profile_json(const std::string& file, const Profile& profile, const Profile* suspended) {
  Json json = {{"version", version},
               {"recording", recording(file, profile)},
               {"functions", functions(profile, false)},
               {"lines", functions(profile, true)},
               {"states", states(profile)},
               {"threads", threads(profile)},
               {"labels", labels(profile)},
               {"heaps", heaps(profile)}};
  if (!profile.marks.empty()) json["compiler"] = compiler(profile);
  if (suspended != nullptr) json["coroutines"] = coroutines(*suspended);
  return json.text();
}

std::string diff_json(const std::string& file_before, const Profile& before, const std::string& file_after,
                      const Profile& after, const ProfileDiff& diff) {
  constexpr std::array<std::string_view, 3> bys = {"samples", "time", "run"};
  Json json = {{"version", version},
               {"before", recording(file_before, before)},
               {"after", recording(file_after, after)},
               {"by", bys[static_cast<std::size_t>(diff.options.by)]},
               {"total", diff.options.total},
               {"can_tell", diff.can_tell},
               {"others", diff.others},
               {"ambiguous", diff.ambiguous},
               {"functions", Json::array()}};
  for (const ProfileDiff::Row& row : diff.rows) json["functions"].add(row_of(row));
  return json.text();
}

}  // namespace luaspy
