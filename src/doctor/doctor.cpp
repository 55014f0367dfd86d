#include "doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iostream>

#include "base/say.h"
#include "doctor/doctor_json.h"
#include "doctor/doctor_text.h"
#include "doctor/looks.h"
#include "luastate/luas.h"
#include "sampling/capture_stop.h"
#include "sampling/session.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "system/written_file.h"

namespace luaspy {
namespace {

constexpr std::uint64_t most_tried_bytes = 512 << 20;  // bytes

std::vector<TrialFacts> trial_facts(const std::vector<RowTrial>& trials, const std::vector<const Lua*>& chosen) {
  std::vector<TrialFacts> facts;
  for (const RowTrial& trial : trials) facts.push_back({trial, std::ranges::find(chosen, &trial.lua) != chosen.end()});
  return facts;
}

void try_layouts(Session& session, const ThreadLooks& looks, DoctorReport& report) {
  const StackReader& reader = session.sampler().reader();
  const Memory& memory = session.target().memory();
  const std::vector<const Lua*> chosen = reader.layouts_to_try(), all = all_layouts();
  std::vector<RowTrial> on_stacks(all.begin(), all.end()), in_memory(all.begin(), all.end());
  for (const Address word : looks.words) try_word(memory, word, on_stacks);
  report.stack_words = looks.words.size();
  report.on_stacks = trial_facts(on_stacks, chosen);
  report.searched_bytes = try_memory(memory, reader.contents(), most_tried_bytes, in_memory);
  report.in_memory = trial_facts(in_memory, chosen);
}

// All of the report that is about the process.
void examine(Session& session, ThreadLooks& looks, DoctorReport& report) {
  StackReader& reader = session.sampler().reader();
  report.process = process_facts(session.target().process());
  report.images = reader.images();
  report.searched = reader.searched();
  looks = look_at_threads(session);
  report.threads = looks.threads, report.threads_left_out = looks.left_out;
  reader.find_states();
  report.states = state_facts(session.target().memory(), reader);
  report.interpreters = interpreter_facts(reader);
  try_layouts(session, looks, report);
  report.modules = module_facts(reader);
  report.mappings = mapping_facts(reader.space());
}

Result<void> write(const DoctorReport& report, const DoctorOptions& options) {
  const std::string text = options.json ? json_of(report) : text_of(report);
  const bool to_stdout = options.output.empty() || options.output == "-";
  if (!to_stdout) return system::write_file(options.output, [&](std::ostream& out) { out << text; });
  std::cout << text;
  return system::flush_standard_output("the report");
}

Result<void> save(Session& session, const ThreadLooks& looks, const std::string& path) {
  const Result<SavedStop> stop = capture_stop(session.target(), looks.with_lua != 0 ? looks.with_lua : looks.any,
                                              "doctor");
  if (!stop) return stop.error();
  if (const Result<void> written = system::write_file(path, [&](std::ostream& out) { save_stop(*stop, out); });
      !written)
    return written.error();
  say("luaspy: written: {}\n  It contains registers and memory of the target: parts of a thread's stack and of its Lua "
      "heap, with whatever data is in them.\n",
      path);
  return {};
}

}  // namespace

Result<int> doctor(const DoctorOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.idle = true;
  sampler_options.limits.count_left_out = true;
  sampler_options.patience = std::chrono::seconds(2);
  DoctorReport report{.time = std::time(nullptr), .system = system_facts()};
  const Result<std::unique_ptr<Session>> opened = Session::open(options.target, sampler_options);
  if (!opened) {
    // A process that luaspy may not look at is worth a report, too.
    const bool refused = opened.error().cause == Cause::permission;
    const std::string reason = options.target.pid != 0 ? opened.error().text + "\n" : "";  // otherwise the text may
                                                                                           // list commands
    report.refusal = (refused ? "luaspy may not look at it.\n" : "There is no process to look at.\n") + reason;
    const Result<void> written = write(report, options);
    return written ? opened.error() : written.error();
  }
  Session& session = **opened;
  system::watch_signals();
  ThreadLooks looks;
  examine(session, looks, report);
  if (!session.target().process().alive())
    return Error{Cause::target_ended,
                 fmt::format("Process {} ended while luaspy looked at it.", session.target().process().pid())};
  if (const Result<void> written = write(report, options); !written) return written.error();
  if (options.save.empty()) return 0;
  if (const Result<void> saved = save(session, looks, options.save); !saved) return saved.error();
  return 0;
}

}  // namespace luaspy
