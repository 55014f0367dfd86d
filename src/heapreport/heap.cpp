#include "heapreport/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/paint.h"
#include "base/say.h"
#include "base/text.h"
#include "heap/heap_contents.h"
#include "heap/resident.h"
#include "heapdump/heap_file.h"
#include "heapdump/take_snapshot.h"
#include "heapreport/heap_json.h"
#include "heapreport/heap_output.h"
#include "heapreport/heap_text.h"
#include "output/print_text.h"
#include "sampling/process_tree.h"
#include "system/progress.h"
#include "system/signals.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

// A snapshot with its states analysed.
struct Analysed {
  HeapSnapshot snapshot;
  std::unique_ptr<UsedPages> used;  // what the analyses read, if the snapshot is to be kept
  Analyses states;
};

// The process may end before all texts are made.
void use_symbols(const Analysed& analysed) {
  for (const auto& state : analysed.states) {
    if (!state->is_known()) continue;
    const ObjectGraph& graph = state->graph();
    for (Node node = 1; node < graph.nodes(); ++node) {
      if (graph.type(node) != ObjectType::c_function) continue;
      const auto function = state->lua().function(state->memory(), state->global_state(), graph.object(node).address);
      if (function) (void)analysed.snapshot.code->name(function->key);
    }
  }
  analysed.snapshot.code->close();
}

Analysed analyse(HeapSnapshot snapshot, bool keep) {
  Analysed analysed;
  analysed.snapshot = std::move(snapshot);
  if (keep) analysed.used = std::make_unique<UsedPages>(*analysed.snapshot.memory);
  const Memory& memory = keep ? static_cast<const Memory&>(*analysed.used) : *analysed.snapshot.memory;
  system::ProgressLine progress;
  const auto printed = [&](const char* step, double part) {
    if (progress.is_due()) progress.show(system::progress_bar(part) + step);
  };
  // The copy and the references between so many objects would be too much together.
  const auto pack = [&](std::uint64_t objects) {
    constexpr std::uint64_t many = 1'000'000;
    if (objects >= many) analysed.snapshot.memory->pack();
  };
  for (const HeapSnapshot::State& state : analysed.snapshot.states)
    analysed.states.push_back(std::make_unique<HeapAnalysis>(
        memory, *state.lua, state.G,
        HeapAnalysis::Options{analysed.snapshot.bytes, printed, pack, analysed.snapshot.code.get()}));
  progress.clear();
  use_symbols(analysed);
  return analysed;
}

Result<ProcessTree> open_family(const HeapOptions& options) {
  SamplerOptions sampler;
  sampler.patience = std::chrono::seconds(2);
  Result<ProcessTree> tree = ProcessTree::open(options.target, sampler, options.subprocesses);
  if (!tree) return tree.error();
  if (const Result<void> lua = tree->check_lua(); !lua) return lua.error();
  system::watch_signals();
  return tree;
}

SnapshotOptions snapshot_options(const HeapOptions& options, bool with_resident) {
  const std::chrono::duration<double, std::milli> max_still(options.max_still);
  return {with_resident, std::chrono::duration_cast<std::chrono::nanoseconds>(max_still), "--max-still"};
}

Result<HeapSnapshot> snapshot_of_file(const HeapOptions& options) {
  if (!options.files.empty()) return read_heap_file(options.files.front());
  Result<std::unique_ptr<CoreFile>> core = CoreFile::open({options.core, options.executable, options.root});
  if (!core) return core.error();
  return take_snapshot(std::move(*core), options.core);
}

// One process after the other, so that the memory of one is needed at a time. Says which process could
// not be looked at; an Error if none could.
Result<void> visit_snapshots(ProcessTree& tree, const SnapshotOptions& options,
                             const std::function<Result<void>(HeapSnapshot)>& visit) {
  std::vector<Error> left_out;
  bool any = false;
  for (const auto& session : tree.sessions()) {
    Result<HeapSnapshot> snapshot = take_snapshot(*session, options);
    if (!snapshot) {
      left_out.push_back(snapshot.error());
      continue;
    }
    any = true;
    if (const Result<void> visited = visit(std::move(*snapshot)); !visited) return visited.error();
  }
  if (!any && !left_out.empty()) return left_out.front();
  for (const Error& error : left_out) say("luaspy: {}\n", error.text);
  return {};
}

void use_contents(const Analysed& analysed) {
  CoroutineLook look;
  for (const auto& state : analysed.states) {
    for (Node node = 1; state->is_known() && node < state->graph().nodes(); ++node)
      use_contents(*analysed.used, state->lua(), state->global_state(), state->graph().object(node), look);
  }
}

Result<void> write(HeapOutput& output, const Analysed& analysed) {
  if (output.is_snapshot()) {
    use_contents(analysed);
    return output.write_snapshot(analysed.snapshot, analysed.used->ranges());
  }
  system::ProgressLine progress;
  const auto printed = [&](double part) {
    if (progress.is_due()) progress.show(system::progress_bar(part) + "writing");
  };
  return output.write(analysed.snapshot, analysed.states, printed);
}

// A coroutine's size is its stack's, but for its lua_State and calls.
ResidentReport resident_report(const Analysed& analysed) {
  std::vector<LuaUse> uses;
  for (const auto& state : analysed.states) {
    if (!state->is_known()) continue;
    const std::uint64_t stacks = state->live()[static_cast<std::size_t>(ObjectType::thread)].bytes;
    uses.push_back({&state->lua(), state->global_state(), state->all_live().bytes + state->other_bytes() - stacks,
                    state->all_dead().bytes, stacks});
  }
  const HeapSnapshot& snapshot = analysed.snapshot;
  return explain_resident(*snapshot.memory, *snapshot.resident, uses, snapshot.stack_pointers);
}

// Each state that is in both, by its global_State.
std::string compare(const Analysed& before, const Analysed& after, const HeapOptions& options, const Paint& paint) {
  const double seconds = static_cast<double>(after.snapshot.taken_ns - before.snapshot.taken_ns) / 1e9;
  std::string text;
  for (const auto& now : after.states) {
    const auto then = std::ranges::find_if(
        before.states, [&](const auto& state) { return state->global_state() == now->global_state(); });
    if (then == before.states.end() || !now->is_known() || !(*then)->is_known()) continue;
    const HeapDiff diff = difference(**then, *now);
    if (options.json) {
      text += to_json(diff, *now, after.snapshot.pid, seconds, options.lines);
      continue;
    }
    if (!text.empty()) text += '\n';
    if (after.states.size() > 1) text += fmt::format("{} at {:#x}\n", now->lua().name(), now->global_state());
    text += to_text(diff, *now, seconds, options.lines, paint);
  }
  return text.empty() ? "No state is in both.\n" : text;
}

Result<std::optional<HeapOutput>> open_output(const HeapOptions& options) {
  std::optional<HeapOutput> output;
  if (options.output.empty()) return output;
  Result<HeapOutput> opened = HeapOutput::open(options.output, options.format);
  if (!opened) return opened.error();
  if (options.diff || options.every > 0) {
    if (const Result<void> can = opened->can_compare(); !can) {
      opened->discard();
      return can.error();
    }
  }
  output.emplace(std::move(*opened));
  return output;
}

// A file that is written takes the report's place, unless JSON is asked for, too.
bool prints_report(const HeapOptions& options) {
  return options.output.empty() || (options.json && options.output != "-");
}

// As a file, and what to do with it.
Result<void> write_difference(HeapOutput& output, const Analysed& before, const Analysed& after) {
  Result<void> written = output.write_difference(before.snapshot, before.states, after.snapshot, after.states);
  if (written && !output.to_stdout())
    say("luaspy: {}\n", written_text(after.snapshot, output.path(), output.next_step()));
  return written;
}

Result<int> compare_files(const HeapOptions& options, std::optional<HeapOutput>& output, const Paint& paint) {
  Result<HeapSnapshot> first = read_heap_file(options.files.front()), last = read_heap_file(options.files.back());
  if (!first) return first.error();
  if (!last) return last.error();
  const Analysed before = analyse(std::move(*first), false), after = analyse(std::move(*last), false);
  if (prints_report(options)) {
    const Result<void> printed = print_text(compare(before, after, options, paint));
    if (!printed) return printed.error();
  }
  if (!output) return 0;
  const Result<void> written = write_difference(*output, before, after);
  return written ? Result<int>(0) : written.error();
}

// The last comparison is the one that the file has, which is of one process.
Result<int> watch(const HeapOptions& options, std::optional<HeapOutput>& output, const Paint& paint) {
  Result<ProcessTree> tree = open_family(options);
  if (!tree) return tree.error();
  std::map<int, std::unique_ptr<Analysed>> firsts;  // by process
  std::unique_ptr<Analysed> last;
  std::optional<Error> ended;  // what was seen before stays
  bool is_first_text = true;
  for (int i = 0; i < options.count && system::end_requested() == 0; ++i) {
    const auto due = system::Clock::now() +
                     std::chrono::duration_cast<system::Clock::duration>(std::chrono::duration<double>(options.every));
    tree->update();
    const Result<void> visited = visit_snapshots(
        *tree, snapshot_options(options, false), [&](HeapSnapshot snapshot) -> Result<void> {
          auto now = std::make_unique<Analysed>(analyse(std::move(snapshot), false));
          std::unique_ptr<Analysed>& first = firsts[now->snapshot.pid];
          if (first == nullptr) {
            first = std::move(now);
            return {};
          }
          std::string text = std::exchange(is_first_text, false) || options.json ? "" : "\n";
          if (options.subprocesses && !options.json) text += process_text(now->snapshot);
          text += compare(*first, *now, options, paint);
          if (output) last = std::move(now);  // else it is not needed any more
          return prints_report(options) ? print_text(text) : Result<void>();
        });
    if (!visited) {
      ended = visited.error();
      break;
    }
    while (i + 1 < options.count && system::Clock::now() < due && system::end_requested() == 0)
      (void)system::sleep_until(due);
  }
  if (output && last == nullptr) output->discard();  // there was nothing to compare
  if (output && last != nullptr) {
    const Result<void> written = write_difference(*output, *firsts.at(last->snapshot.pid), *last);
    if (!written) return written.error();
  }
  return ended ? Result<int>(*ended) : 0;
}

// What is said of one process; empty if it has nothing of what was asked for.
std::string report(const Analysed& analysed, const HeapOptions& options, const Paint& paint) {
  const bool tells_all = !options.questions.any() && prints_report(options);
  std::optional<ResidentReport> resident;
  if (options.rss) resident = resident_report(analysed);
  if (tells_all && options.json)
    return to_json(analysed.snapshot, analysed.states, options.lines, resident ? &*resident : nullptr);
  std::string text = tells_all ? head_text(analysed.snapshot) : "";
  for (const auto& state : analysed.states) {
    if (tells_all) text += '\n' + to_text(*state, options.lines, paint);
    else if (state->is_known()) text += answers(*state, options.questions, options.lines, paint);
  }
  if (resident && !options.json) text += "\n" + to_text(*resident, paint);
  return text;
}

}  // namespace

Result<int> heap(const HeapOptions& options) {
  const Paint paint(system::terminal_of(1).colours);
  Result<std::optional<HeapOutput>> opened = open_output(options);
  if (!opened) return opened.error();
  std::optional<HeapOutput>& output = *opened;
  if (options.diff || options.every > 0) {
    Result<int> compared = options.diff ? compare_files(options, output, paint) : watch(options, output, paint);
    if (!compared && output) output->discard();
    return compared;
  }
  bool any_text = false;
  std::string written_line;
  const auto print = [&](HeapSnapshot snapshot) -> Result<void> {
    const Analysed analysed = analyse(std::move(snapshot), output && output->is_snapshot());
    if (output) {
      if (Result<void> written = write(*output, analysed); !written || output->to_stdout()) return written;
      written_line = written_text(analysed.snapshot, output->path(), output->next_step());
    }
    std::string text = report(analysed, options, paint);
    if (text.empty()) return {};
    if (std::exchange(any_text, true) && !options.json) text.insert(0, "\n");
    return print_text(text);
  };
  const auto print_all = [&]() -> Result<void> {
    if (!options.files.empty() || !options.core.empty()) {
      Result<HeapSnapshot> snapshot = snapshot_of_file(options);
      if (!snapshot) return snapshot.error();
      return print(std::move(*snapshot));
    }
    Result<ProcessTree> tree = open_family(options);
    if (!tree) return tree.error();
    return visit_snapshots(*tree, snapshot_options(options, options.rss), print);
  };
  if (const Result<void> printed = print_all(); !printed) {
    if (output) output->discard();
    return printed.error();
  }
  if (output && output->to_stdout()) return 0;
  if (output) say("luaspy: {}\n", written_line);
  if (!any_text && (!output || options.questions.any()))
    return Error{Cause::usage,
                 "There is no such object, and no class of that name. An object is named by its address or its path, a "
                 "class by its name or number, each as luaspy heap prints them."};
  return 0;
}

}  // namespace luaspy
