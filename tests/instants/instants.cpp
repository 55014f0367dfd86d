// Is a heap right at any instant? Programs that allocate without end are copied at random instants, as
// luaspy heap does it, and each copy is judged: its sum must be what Lua's own counter says, and each
// reference of a live object must lead to an object. There may be one place where that is not so: the
// value or the object that the program is just changing. All references of one object may lead astray: LuaJIT
// makes a table's array larger before it clears the new slots (lj_tab.c, lj_tab_resize).
//
//   instants [COUNT] [NAME...]
//
// COUNT (20) instants of each prepared Lua whose name contains one of the NAMEs; without names, of one
// of each version. Each runs instants.lua in all modes of its collector and compiler. Prints a line for
// each; status 1 if a figure is above its bound.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "heap/object_graph.h"
#include "heapdump/take_snapshot.h"
#include "sampling/session.h"
#include "support/child.h"
#include "support/target_table.h"

namespace luaspy::instants {
namespace {

// One of each version, as built by distributions or by its authors.
const std::vector<std::string> usual = {"debian-lua5.1-bookworm",  "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                                        "debian-lua5.4-bookworm",  "debian-lua5.5-sid",      "debian-luajit-bookworm",
                                        "luajit-2.1.newest-gc64",  "luajit-2.1.newest-gc32", "lua-5.4.9-O2",
                                        "luajit-2.1.20170501-gc32"};

// Of what the counter says.
double tolerated(const Spec& spec) { return spec.is_luajit() ? 1e-3 : 1e-4; }

std::vector<std::string> modes_of(const Spec& spec) {
  if (spec.is_luajit()) return {"", "jit-off"};
  const bool is_generational = spec.version.starts_with("5.2") || spec.version.starts_with("5.4") ||
                               spec.version.starts_with("5.5");
  return is_generational ? std::vector<std::string>{"", "generational"} : std::vector<std::string>{""};
}

// The program, when it has said that it is ready.
class Program {
 public:
  Program(const Spec& spec, const std::string& mode) : Program(spec, mode, new_pipe()) {}
  pid_t pid() const { return child_.pid(); }

 private:
  static std::array<int, 2> new_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) tests::give_up("no pipe");
    return ends;
  }
  Program(const Spec& spec, const std::string& mode, std::array<int, 2> ends)
      : child_(command_of(spec, mode), {.errors = "/dev/stderr", .output_fd = ends[1]}) {
    ::close(ends[1]);
    std::string said;
    for (char c = 0; said.find("READY\n") == std::string::npos && ::read(ends[0], &c, 1) == 1;) said += c;
    ::close(ends[0]);
    if (!said.ends_with("READY\n")) tests::give_up(spec.name + " has not begun");
  }
  static tests::Words command_of(const Spec& spec, const std::string& mode) {
    tests::Words words = spec.command;
    words.push_back(LUASPY_TESTS "/instants/instants.lua");
    if (!mode.empty()) words.push_back(mode);
    return words;
  }

  tests::Child child_;
};

struct Counts {
  int instants = 0, failed = 0, disturbed = 0, torn = 0, above = 0;
  int halfway = 0, bad = 0;  // instants at which references lead to one place without an object, or one object's to
                             // several; others
  std::int64_t objects = 0, references = 0;
  double worst = 0;                         // of what the counter says
  std::vector<double> still;                // ms
  std::map<std::string, int> phases, what;  // of the collector; what was bad
};

// Which nodes can be reached.
std::vector<bool> live_nodes(const ObjectGraph& graph) {
  std::vector<bool> live(graph.nodes());
  std::vector<Node> open = {root_node};
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    for (const Node to : graph.references(node)) {
      if (!live[to]) live[to] = true, open.push_back(to);
    }
  }
  return live;
}

void judge(const HeapSnapshot& snapshot, const HeapSnapshot::State& state, const Spec& spec, Counts& counts) {
  const std::unique_ptr<HeapReader> reader = state.lua->heap_reader(*snapshot.memory, state.G);
  if (reader == nullptr) {
    ++counts.failed, ++counts.what["no heap is found"];
    return;
  }
  const ObjectGraph graph(*reader, {.bytes = snapshot.bytes, .found = {}, .all_found = {}, .read = {}});
  const CollectorState collector = state.lua->collector(*snapshot.memory, state.G);
  ++counts.phases[std::string(collector.phase)];
  if (!collector.known) ++counts.failed, ++counts.what["the collector's phase is not known"];
  std::uint64_t sum = reader->other_bytes();
  for (Node node = 1; node < graph.nodes(); ++node) sum += graph.size(node);
  const double part = static_cast<double>(static_cast<std::int64_t>(sum) - collector.bytes) /
                      static_cast<double>(std::max<std::int64_t>(collector.bytes, 1));
  const bool is_right = graph.is_complete() && std::abs(part) <= tolerated(spec);
  counts.torn += graph.is_complete() ? 0 : 1;
  counts.above += std::abs(part) <= tolerated(spec) ? 0 : 1;
  if (std::abs(part) > std::abs(counts.worst)) counts.worst = part;
  if (!is_right)
    ++counts.what[fmt::format("{} in {}: {:+.4f} % ({:+} bytes)", graph.is_complete() ? "sum" : "list", collector.phase,
                              100 * part, static_cast<std::int64_t>(sum) - collector.bytes)];
  // At an instant one value may be half written: the type of the old one, the address of the new one.
  // Or one object is just going from one list to another.
  std::set<Address> bad;
  std::set<Node> from;
  std::string first;
  const std::vector<bool> live = live_nodes(graph);
  for (Node node = 1; node < graph.nodes(); ++node) {
    ++counts.objects;
    if (!live[node]) continue;
    const HeapObject object = graph.object(node);
    reader->visit_references(object, [&](const Reference& reference) {
      ++counts.references;
      // LuaJIT's empty string is part of the global_State (lj_obj.h, strempty).
      constexpr Address global_state = 16384;
      if (reference.to == 0 || graph.find(reference.to) || reference.to - state.G < global_state) return;
      from.insert(node);
      if (bad.insert(reference.to).second && bad.size() == 1)
        first = fmt::format("{}, link {}, to {:#x}, in {}", name(object.type), static_cast<int>(reference.link),
                            reference.to, collector.phase);
    });
  }
  if (bad.empty()) return;
  ++(bad.size() == 1 || from.size() == 1 ? counts.halfway : counts.bad);
  ++counts.what[fmt::format("{} of {} lead nowhere: {}", bad.size(), from.size(), first)];
}

Counts run_one(const Spec& spec, const std::string& mode, int count) {
  constexpr double longest = 6;  // ms between two instants
  const Program program(spec, mode);
  Counts counts;
  TargetOptions target;
  target.pid = program.pid();
  SamplerOptions sampler;
  sampler.patience = std::chrono::seconds(2);
  const Result<std::unique_ptr<Session>> session = Session::open(target, sampler);
  if (!session) tests::give_up(session.error().text);
  if (const Result<void> lua = (*session)->check_lua(); !lua) tests::give_up(lua.error().text);
  std::mt19937 dice(20261123);
  std::uniform_real_distribution<double> pause(0, longest);
  for (; counts.instants < count; ++counts.instants) {
    tests::sleep_ms(pause(dice));
    const Result<HeapSnapshot> snapshot = take_snapshot(**session);
    if (!snapshot || snapshot->states.size() != 1) {
      ++counts.failed, ++counts.what[snapshot ? "not one Lua" : snapshot.error().text];
      continue;
    }
    counts.disturbed += snapshot->of_one_instant ? 0 : 1;
    counts.still.push_back(static_cast<double>(snapshot->stood_still_ns) / 1e6);
    judge(*snapshot, snapshot->states.front(), spec, counts);
  }
  return counts;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

bool measure(const Spec& spec, const std::string& mode, int count) {
  const Counts counts = run_one(spec, mode, count);
  const double longest = counts.still.empty() ? 0 : *std::ranges::max_element(counts.still);
  fmt::print("{:<26} {:<12} {:>8} {:>6} {:>9} {:>5} {:>6} {:>9} {:>+9.4f} {:>5} {:>12} {:>4} {:>4} {:>7.1f} {:>7.1f}\n",
             spec.name, mode.empty() ? "-" : mode, counts.instants, counts.failed, counts.disturbed, counts.torn,
             counts.above, counts.objects / std::max(counts.instants, 1), 100 * counts.worst, counts.phases.size(),
             counts.references, counts.halfway, counts.bad, median(counts.still), longest);
  for (const auto& [what, times] : counts.what) fmt::print("    {} × {}\n", times, what);
  std::fflush(stdout);
  return counts.failed + counts.disturbed + counts.torn + counts.above + counts.bad == 0;
}

int run(const std::vector<std::string>& words) {
  int count = 20;
  std::vector<std::string> names;
  for (const std::string& word : words) {
    if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) count = std::stoi(word);
    else names.push_back(word);
  }
  std::vector<Spec> specs = read_specs(LUASPY_TARGETS "/targets.tsv");
  for (Spec& spec : read_specs(LUASPY_TARGETS "/luajits.tsv")) specs.push_back(std::move(spec));
  bool good = true;
  int measured = 0;
  fmt::print("{:<26} {:<12} {:>8} {:>6} {:>9} {:>5} {:>6} {:>9} {:>9} {:>5} {:>12} {:>4} {:>4} {:>7} {:>7}\n", "",
             "mode", "instants", "failed", "disturbed", "torn", "above", "objects", "worst %", "GC", "references",
             "half", "bad", "ms", "most");
  for (const Spec& spec : specs) {
    const bool wanted = names.empty() ? std::ranges::find(usual, spec.name) != usual.end()
                                      : std::ranges::any_of(names, [&](const std::string& name) {
                                          return spec.name.find(name) != std::string::npos;
                                        });
    if (!wanted) continue;
    for (const std::string& mode : modes_of(spec)) good &= measure(spec, mode, count), ++measured;
  }
  return good && measured > 0 ? 0 : 1;
}

}  // namespace
}  // namespace luaspy::instants

int main(int argc, char** argv) { return luaspy::instants::run({argv + 1, argv + argc}); }
