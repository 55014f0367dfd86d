// Luas and states in places and forms that differ from those of the lua program.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "support/harness.h"

namespace luaspy::live::finding_test {
namespace {

struct Recorded {
  std::string text, summary;
  std::vector<FoldedStack> stacks;
  std::int64_t all = 0;
};

// For how long, how often, and what bounds the pauses.
const Words often = {"-d", "1", "-r", "400", "--max-stopped", "100"}, as_usual = {"-d", "2.3", "-r", "100"};

Recorded record(const Running& running, const Words& options = often) {
  const Finished finished = luaspy(Words{"record", "-f", "folded", "-o", "-", "--pid", std::to_string(running.pid())} +
                                   options);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  Recorded recorded{finished.out, finished.err, parse_folded(finished.out)};
  for (const FoldedStack& stack : recorded.stacks) recorded.all += stack.count;
  REQUIRE(recorded.all > (options == often ? 50 : 10));
  return recorded;
}

// Adds another recording of the same program.
void add(Recorded& all, const Recorded& more) {
  all.text += more.text;
  all.summary += more.summary;
  all.stacks.insert(all.stacks.end(), more.stacks.begin(), more.stacks.end());
  all.all += more.all;
}

// Whether the stack has frames that contain these texts, in this order, outermost first.
bool has(const FoldedStack& stack, const Words& wanted) {
  auto from = stack.frames.begin();
  for (const std::string& text : wanted) {
    from = std::find_if(from, stack.frames.end(),
                        [&](const std::string& frame) { return frame.find(text) != frame.npos; });
    if (from == stack.frames.end()) return false;
    ++from;
  }
  return true;
}

// How many samples have these frames.
std::int64_t count(const Recorded& recorded, const Words& wanted) {
  std::int64_t count = 0;
  for (const FoldedStack& stack : recorded.stacks) count += has(stack, wanted) ? stack.count : 0;
  return count;
}

}  // namespace

namespace {

// Records as usual until there are samples enough for shares, and checks that next to all of them have
// Lua calls and reach the first C function, and that the pauses are within the bound with every tick
// made: in most recordings, as others may take the CPU from luaspy during a pause.
Recorded record_all(const Running& running) {
  static const std::regex shares("([0-9.]+) % have Lua calls, ([0-9.]+) % reach the thread's first");
  constexpr int most_recordings = 8;
  Recorded recorded;
  double with_lua = 0, whole = 0;  // samples
  int recordings = 0, lowered = 0;
  for (; recordings < most_recordings && (recorded.all < 200 || 2 * lowered >= recordings); ++recordings) {
    const Recorded more = record(running, as_usual);
    lowered += more.summary.find("rate lowered") != std::string::npos;
    std::smatch said;
    REQUIRE(std::regex_search(more.summary, said, shares));
    with_lua += std::stod(said[1]) / 100 * static_cast<double>(more.all);
    whole += std::stod(said[2]) / 100 * static_cast<double>(more.all);
    add(recorded, more);
  }
  INFO(recorded.summary);
  CHECK(2 * lowered < recordings);
  CHECK(recorded.all >= 200);
  CHECK(with_lua >= 0.99 * static_cast<double>(recorded.all));
  CHECK(whole >= 0.99 * static_cast<double>(recorded.all));
  return recorded;
}

}  // namespace

TEST_CASE("fibers on stacks from malloc, of which one runs", "[finding]") {
  struct Way {
    std::string version, fibers, states;
    Words options;
  };
  const Way way = GENERATE(
      Way{"5.1", "context", "own", {}}, Way{"5.1", "called", "shared", {}}, Way{"5.4", "context", "shared", {}},
      Way{"5.4", "called", "own", {}}, Way{"5.4", "pushed", "own", {}}, Way{"5.4", "context", "own", {"-s"}},
      Way{"5.4", "context", "own", {"-static"}}, Way{"5.4", "called", "shared", {"-s"}},
      Way{"5.4", "pushed", "own", {"-s"}}, Way{"2.1.newest-gc64", "context", "own", {}},
      Way{"2.1.newest-gc64", "called", "own", {"-s"}}, Way{"2.1.newest-gc32", "pushed", "own", {}});
  const Folder folder;
  Running running({compile(folder, "fibers", source_version(way.version), way.options), way.fibers, way.states});
  running.read_until("READY");
  INFO(way.version << " " << way.fibers << " " << way.states << (way.options.empty() ? "" : way.options.front()));
  const Recorded recorded = record_all(running);
  INFO(recorded.summary << recorded.text);
  CHECK_THAT(recorded.summary, !Catch::Contains("the native part of the stack is incomplete"));
  std::int64_t with_lua = 0;
  constexpr int fibers = 8;
  for (const FoldedStack& stack : recorded.stacks) {
    int there = 0;
    for (int n = 0; n < fibers; ++n) there += has(stack, {"(fiber_" + std::to_string(n) + ":"}) ? 1 : 0;
    with_lua += there != 0 ? stack.count : 0;
    CHECK(there <= 1);  // nothing of suspended ones
  }
  CHECK(static_cast<double>(with_lua) >= 0.99 * static_cast<double>(recorded.all));
  for (int n = 0; n < fibers; ++n)
    CHECK(count(recorded, {"outer_" + std::to_string(n) + " (", "inner_" + std::to_string(n) + " ("}) > 0);
}

TEST_CASE("a host has 2,000 states on its stack", "[finding]") {
  const std::string version = source_version(GENERATE("5.1", "5.4", "2.1.newest-gc64"));
  const std::string mode = GENERATE("one", "turns");
  const Folder folder;
  Running running({compile(folder, "pool", version), mode});
  running.read_until("READY");
  INFO(version << " " << mode);
  const Recorded recorded = record_all(running);
  INFO(recorded.summary << recorded.text);
  CHECK(static_cast<double>(count(recorded, {"work", "(state_"})) >= 0.98 * static_cast<double>(recorded.all));
  if (mode == "one") CHECK(count(recorded, {"(state_1000:"}) == count(recorded, {"(state_"}));
}

TEST_CASE("coroutines in arenas that grow while they are looked at", "[finding]") {
  const std::string version = source_version(GENERATE("5.1", "5.4", "5.5"));
  const std::string mode = GENERATE("own", "turns");
  const Folder folder;
  Running running({compile(folder, "arenas", version), mode});
  running.read_until("READY");
  INFO(version << " " << mode);
  const Recorded recorded = record(running);
  INFO(recorded.summary << recorded.text);
  const auto resumed = static_cast<double>(count(recorded, {"(arenas:4)", "coroutine.resume [C]"}));
  CHECK(resumed > 0.5 * static_cast<double>(recorded.all));
  CHECK(static_cast<double>(count(recorded, {"(arenas:4)", "coroutine.resume [C]", "(arenas:3)"})) > 0.95 * resumed);
}

TEST_CASE("LuaJIT calls C functions through a wrapper", "[finding]") {
  const std::string version = source_version(
      GENERATE("2.1.20170501-gc64", "2.1.20170501-gc32", "2.1.newest-gc64", "2.1.newest-gc32"));
  const std::string mode = GENERATE("on", "off");
  const Folder folder;
  Running running({compile(folder, "wrapped", version), mode});
  running.read_until("READY");
  INFO(version << " " << mode);
  const Recorded recorded = record(running);
  INFO(recorded.summary << recorded.text);
  CHECK(static_cast<double>(count(recorded, {"(wrapped:2)", "(wrapped:1)"})) > 0.9 * static_cast<double>(recorded.all));
  CHECK(recorded.summary.find("100.00 % have Lua calls, 100.00 % reach") != std::string::npos);
}

TEST_CASE("Lua is called without protection", "[finding]") {
  struct Way {
    std::string name;
    std::vector<Words> stacks;  // each must have its share of the samples
  };
  const std::string version = source_version(GENERATE("5.1", "5.2", "5.3", "5.4", "5.5"));
  const Way way = GENERATE(
      Way{"turns", {{"call_first", "(first:2)", "(first:1)"}, {"call_second", "(second:2)", "(second:1)"}}},
      Way{"inside", {{"(first:3)", "enter", "(second:2)", "(second:1)"}}},
      Way{"back", {{"(first:3)", "enter", "(second:3)", "enter", "(first:2)", "(first:1)"}}},
      Way{"coroutine", {{"(first:4)", "(first:2)", "(first:1)"}}}, Way{"thread", {{"run (", "(first:2)", "(first:1)"}}},
      Way{"function", {{"run (", "enter", "(second:2)", "(second:1)"}}},
      Way{"threads", {{"call_first", "(first:2)", "(first:1)"}, {"call_second", "(second:2)", "(second:1)"}}});
  const Folder folder;
  Running running({compile(folder, "unprotected", version), way.name});
  running.read_until("READY");
  INFO(version << " " << way.name);
  const Recorded recorded = record(running);
  INFO(recorded.summary << recorded.text);
  std::int64_t right = 0;
  for (const Words& stack : way.stacks) {
    const std::int64_t count = finding_test::count(recorded, stack);
    CHECK(static_cast<double>(count) >
          0.5 / static_cast<double>(way.stacks.size()) * static_cast<double>(recorded.all));
    right += count;
  }
  CHECK(static_cast<double>(right) > 0.9 * static_cast<double>(recorded.all));
  // Nothing is counted for the other state.
  for (const FoldedStack& stack : recorded.stacks) {
    const bool wrong = has(stack, {"call_first", "(second:"}) || has(stack, {"call_second", "(first:"}) ||
                       (way.name == "inside" && has(stack, {"(second:", "(first:"}));
    CHECK(!wrong);
  }
}

TEST_CASE("several Luas in one program", "[finding]") {
  const std::vector<Words> all = {{"5.1", "5.4"}, {"5.3", "5.5"}, {"5.4", "5.4"}};
  const Words starts = GENERATE_COPY(from_range(all));
  const Symbols symbols = GENERATE(Symbols::local, Symbols::prefixed);
  const Words versions = {source_version(starts[0]), source_version(starts[1])};
  const Folder folder;
  Running running({compile_several(folder, "several", versions, symbols)});
  running.read_until("READY");
  INFO(versions[0] << " " << versions[1]);
  Recorded recorded = record(running);
  // On a busy machine there may be 100 samples only: too few for shares.
  while (recorded.all < 300) add(recorded, record(running));
  INFO(recorded.summary << recorded.text);
  const std::int64_t first = count(recorded, {"(part_0:2)", "(part_0:1)"}),
                     second = count(recorded, {"(part_1:2)", "(part_1:1)"});
  const std::int64_t inside = count(recorded, {"(part_0:3)", "inside", "(part_1:2)", "(part_1:1)"});
  CHECK(static_cast<double>(first) > 0.2 * static_cast<double>(recorded.all));  // a third each
  CHECK(static_cast<double>(second - inside) > 0.2 * static_cast<double>(recorded.all));
  CHECK(static_cast<double>(inside) > 0.2 * static_cast<double>(recorded.all));
  CHECK(static_cast<double>(first + second) > 0.9 * static_cast<double>(recorded.all));
  const Finished listed = luaspy({"ps"});
  CHECK(listed.out.find(std::to_string(running.pid()) + " ") != std::string::npos);
}

TEST_CASE("a Lua by another name", "[finding]") {
  const std::string version = source_version(GENERATE("5.1", "5.2", "5.3", "5.4.2", "5.4", "5.5"));
  const Folder folder;
  std::string program = read_file(compile(folder, "unprotected", version));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"Lua 5.", "Mud+7."},
                                 {"$LuaVersion", "$MudVersion"},
                                 {"$Lua:", "$Mud:"},
                                 {"Lua.org", "Mud.org"}}) {
    for (std::size_t at = program.find(from); at != program.npos; at = program.find(from, at))
      program.replace(at, from.size(), to);
  }
  Running running({folder.write("mud", program, 0755), "coroutine"});
  running.read_until("READY");
  INFO(version);
  const Recorded recorded = record(running);
  INFO(recorded.summary << recorded.text);
  CHECK(static_cast<double>(count(recorded, {"(first:4)", "(first:2)", "(first:1)"})) >
        0.9 * static_cast<double>(recorded.all));
  const Finished listed = luaspy({"ps"});
  CHECK(listed.out.find(std::to_string(running.pid()) + " ") != std::string::npos);
}

TEST_CASE("programs without a Lua are not listed", "[finding]") {
  Running bash({"bash", "-c", "echo READY; read -r _"}),
      python({"python3", "-c", "print('READY', flush=True); input()"}),
      perl({"perl", "-e", "$| = 1; print \"READY\\n\"; <STDIN>"});
  // A program that contains Lua's names: luaspy itself, under another path.
  const Folder folder;
  Running copy({folder.write("spy", read_file(luaspy_program), 0755), "record", "-o", "/dev/null", "--pid",
                std::to_string(bash.pid())});
  for (Running* running : {&bash, &python, &perl}) running->read_until("READY");
  const nlohmann::json json = nlohmann::json::parse(luaspy({"ps", "--json"}).out);
  for (const nlohmann::json& process : json.at("processes")) {
    INFO(process.dump(2));
    for (const Running* running : {&bash, &python, &perl, &copy}) CHECK(process.at("pid") != running->pid());
  }
}

}  // namespace luaspy::live::finding_test
