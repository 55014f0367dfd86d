// Every coroutine of a process, compared with what the program itself prints about it:
// coroutine.status and debug.traceback.

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "coroutine_look.h"
#include "support/harness.h"
#include "traceback.h"

namespace luaspy::live::coroutines_test {
namespace {

struct Told {
  std::string label, status;
  std::vector<Line> stack;
  bool found = false;
};

std::vector<Told> parse(const std::vector<std::string>& text) {
  std::vector<Told> told;
  std::vector<std::string> traceback;
  const auto finish = [&] {
    if (!told.empty()) told.back().stack = parse_traceback(traceback);
    traceback.clear();
  };
  for (const std::string& line : text) {
    if (!line.starts_with("COROUTINE ")) {
      traceback.push_back(line);
      continue;
    }
    finish();
    const std::string rest = line.substr(10);
    const std::size_t space = rest.rfind(' ');
    told.push_back({rest.substr(0, space), rest.substr(space + 1), {}});
  }
  finish();
  return told;
}

std::string lua_status(CoroutineStatus status) {
  switch (status) {
    case CoroutineStatus::not_started:
      return "suspended";
    case CoroutineStatus::failed:
      return "dead";
    case CoroutineStatus::elsewhere:
      return "normal";
    default:
      return std::string(name(status));
  }
}

std::vector<Line> lines_of(const Stack& stack) {
  std::vector<Line> lines;
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    if (frame->kind == Frame::Kind::lua)
      lines.push_back({Line::Kind::lua, base_name(frame->file), frame->name, frame->line, frame->line_defined});
    else if (frame->kind == Frame::Kind::c) lines.push_back({Line::Kind::c, {}, frame->name});
    else if (frame->name == "(...tail calls...)") lines.push_back({Line::Kind::tail_calls});
    else lines.push_back({Line::Kind::skipped, {}, frame->name});
  }
  return lines;
}

std::string describe(const StateReport& report) {
  std::string result = fmt::format("{} {} {}: {} objects, {} bytes, {} unread, {} garbage, main {}\n", report.lua,
                                   report.collector.phase, report.collector.mode, report.objects,
                                   report.collector.bytes, report.unread, report.garbage, name(report.main_status));
  for (const CoroutineGroup& group : report.groups) {
    result += fmt::format("{} {}, began {} ({}:{})\n{}", group.count, name(group.status), group.began.name,
                          group.began.file, group.began.line, text(lines_of(group.stack)));
  }
  return result;
}

// Whether a group agrees with what the program printed about a coroutine. The innermost frames of
// running coroutines have changed since.
bool same_coroutine(const Told& told, const CoroutineGroup& group) {
  if (told.status != lua_status(group.status)) return false;
  const bool finer = told.label == "not started" || told.label == "failed" || told.label == "dead";
  if (finer && told.label != name(group.status) && told.stack.empty() != (group.status != CoroutineStatus::failed))
    return false;
  if (told.status == "running") return true;
  return same_stack(told.stack, lines_of(group.stack));
}

void compare(std::vector<Told> told, const StateReport& report) {
  INFO(describe(report));
  CHECK(report.complete);
  CHECK(report.unread == 0);
  std::int64_t all = 0;
  for (const CoroutineGroup& group : report.groups) {
    all += group.count;
    for (std::int64_t i = 0; i < group.count; ++i) {
      const auto same = std::ranges::find_if(told,
                                             [&](const Told& one) { return !one.found && same_coroutine(one, group); });
      INFO("luaspy alone says: " << name(group.status) << "\n" << text(lines_of(group.stack)));
      CHECK(same != told.end());
      if (same != told.end()) same->found = true;
    }
  }
  CHECK(all == static_cast<std::int64_t>(told.size()));
  for (const Told& one : told) {
    INFO("the program alone says: " << one.label << ", " << one.status << "\n" << text(one.stack));
    CHECK(one.found);
  }
}

std::int64_t count_of(const StateReport& report, CoroutineStatus status) {
  return report.counts[static_cast<std::size_t>(status)];
}

std::unique_ptr<Running> start(Words command, const Words& arguments, std::vector<std::string>& said) {
  command.push_back(workload("forest.lua"));
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto running = std::make_unique<Running>(command);
  said = running->read_until("READY");
  return running;
}

void check_kinds(const Words& command, const std::string& kind) {
  INFO(Catch::StringMaker<Words>::convert(command));
  std::vector<std::string> said;
  const auto running = start(command, {kind}, said);
  const std::vector<Told> told = parse(said);
  REQUIRE(told.size() > 25);
  CoroutineWatcher watcher(running->pid());
  const CoroutineLookup look = watcher.look();
  REQUIRE(look.states.size() == 1);
  CHECK(look.complete);
  compare(told, look.states[0]);
  CHECK(look.states[0].main_status == CoroutineStatus::normal);
  CHECK(count_of(look.states[0], CoroutineStatus::running) == 1);
  // A generational collector becomes incremental for some time if collections do not free enough
  // (lgc.c, stepgenfull).
  if (kind == "kinds") CHECK(look.states[0].collector.mode == "incremental");
  CHECK(look.states[0].collector.bytes > 20'000);
}

void check_forest(const Words& command) {
  INFO(Catch::StringMaker<Words>::convert(command));
  std::vector<std::string> said;
  const auto running = start(command, {"forest", "10000", "wait"}, said);
  CoroutineWatcher watcher(running->pid());
  const CoroutineLookup look = watcher.look();
  REQUIRE(look.states.size() == 1);
  INFO(describe(look.states[0]));
  CHECK(look.complete);
  CHECK(look.states[0].groups.size() == 10);
  std::set<std::string> places;
  for (const CoroutineGroup& group : look.states[0].groups) {
    CHECK(group.count == 1000);
    CHECK(group.status == CoroutineStatus::suspended);
    REQUIRE(group.stack.size() == 3);
    places.insert(group.stack[1].file);
    CHECK(group.stack[1].line == 3);
    CHECK(group.began.file == group.stack[1].file);
  }
  CHECK(places.size() == 10);
}

}  // namespace

TEST_CASE("each coroutine is as the program says", "[coroutines][luas][smoke]") {
  const auto i = GENERATE(range<std::size_t>(0, targets().size()));
  check_kinds(targets()[i].command, "kinds");
}

TEST_CASE("each coroutine of LuaJIT is as the program says", "[coroutines][luas][smoke]") {
  const auto i = GENERATE(range<std::size_t>(0, luajits().size()));
  check_kinds(luajits()[i].command, "kinds");
}

TEST_CASE("generational collectors have coroutines, too", "[coroutines][all][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared({"lua-5.4.9-O2", "lua-5.5.1-O2", "lua-5.4.2-O2"})));
  check_kinds(target(name).command, "generational");
}

TEST_CASE("a forest of coroutines is as many groups as there are places", "[coroutines][all][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"lua-5.1.5-O2", "lua-5.2.4-O2", "lua-5.3.6-O2", "lua-5.4.7-O2", "lua-5.5.1-O2"})));
  check_forest(target(name).command);
}

TEST_CASE("a forest in LuaJIT", "[coroutines][all][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc64", "luajit-2.1.20170501-gc32",
                           "luajit-2.1.newest-gc64", "luajit-2.1.newest-gc32", "luajit-2.1.tarantool2.6-gc64"})));
  check_forest(target(name).command);
}

TEST_CASE("what a sweep has not freed yet is no coroutine", "[coroutines][all]") {
  const auto [name, sweep, step] = GENERATE(
      table<const char*, const char*, const char*>({{"lua-5.1.5-O2", "GCSsweep", "20"},
                                                    {"lua-5.3.6-O2", "GCSswpallgc", "20"},
                                                    {"luajit-2.1.newest-gc64", "GCSsweep", "20"},
                                                    {"luajit-2.1.20170501-gc32", "GCSsweep", "20"}}));
  INFO(name);
  std::vector<std::string> said;
  const auto running = start(target(name).command, {"sweep", step}, said);
  const auto told = static_cast<std::int64_t>(parse(said).size());
  CoroutineWatcher watcher(running->pid());
  bool swept = false;
  std::int64_t most_garbage = 0;
  for (int i = 0; i < 400 && !(swept && most_garbage > 0); ++i) {
    running->send("step\n");
    running->read_until("READY");
    const CoroutineLookup look = watcher.look();
    REQUIRE(look.complete);
    const StateReport& report = look.states.at(0);
    std::int64_t all = 0;
    for (const std::int64_t count : report.counts) all += count;
    REQUIRE(all >= told);
    if (report.collector.phase != sweep) continue;
    swept = true;
    most_garbage = std::max(most_garbage, report.garbage);
    INFO(describe(report));
    CHECK(all == told);  // the others are dead, or freed
  }
  CHECK(swept);
  CHECK(most_garbage > 0);
}

TEST_CASE("a forest that works on", "[coroutines][all][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"lua-5.1.5-O2", "lua-5.3.6-O2", "lua-5.4.9-O2", "lua-5.5.1-O2", "luajit-2.1.newest-gc64",
                           "luajit-2.1.20220320-gc32"})));
  INFO(name);
  std::vector<std::string> said;
  const auto running = start(target(name).command, {"forest", "1000", "work"}, said);
  CoroutineWatcher watcher(running->pid());
  bool complete = false;
  for (int i = 0; i < 5; ++i) {
    const CoroutineLookup look = watcher.look();
    complete |= look.complete;
    std::int64_t in_forest = 0;
    INFO(describe(look.states.at(0)));
    for (const CoroutineGroup& group : look.states.at(0).groups) {
      const bool of_forest = group.began.file.starts_with("place");
      if (group.status == CoroutineStatus::suspended && of_forest) CHECK(group.count <= 100);
      if (of_forest || group.status == CoroutineStatus::running) in_forest += group.count;
    }
    // One may just be resumed, or a short-lived one may run.
    if (look.complete) CHECK((in_forest == 1000 || in_forest == 1001));
  }
  CHECK(complete);
}

TEST_CASE("all Luas of a process are found, whatever thread they are of", "[coroutines][luas]") {
  const std::string version = GENERATE_COPY(from_range(prepared({"5.1", "5.3.6", "5.4", "5.5"})));
  const Folder folder;
  Running running({compile(folder, "states", source_version(version))});
  running.read_until("READY");
  CoroutineWatcher watcher(running.pid());
  const CoroutineLookup look = watcher.look();
  CHECK(look.complete);
  REQUIRE(look.states.size() == 5);  // states.c: the sixth is closed
  std::multiset<std::int64_t> suspended;
  for (const StateReport& report : look.states) suspended.insert(count_of(report, CoroutineStatus::suspended));
  CHECK(suspended == std::multiset<std::int64_t>{1, 2, 3, 4, 5});
}

// Not a test: measures the cost of a look in a heap of COROUTINES_MB megabytes.
TEST_CASE("what a look at coroutines costs", "[.][coroutines_cost]") {
  const char* const mb = std::getenv("COROUTINES_MB");
  for (const char* const name : {"lua-5.4.9-O2", "luajit-2.1.newest-gc64"}) {
    for (const char* const way : {"wait", "work"}) {
      std::vector<std::string> said;
      const auto running = start(target(name).command, {"forest", "10000", way, mb != nullptr ? mb : "100"}, said);
      CoroutineWatcher watcher(running->pid());
      for (int i = 0; i < 3; ++i) {
        const CoroutineLookup look = watcher.look();
        const auto ms = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; };
        const StateReport& report = look.states.at(0);
        fmt::print(
            "{} {}: heap {:.1f} MB, {} objects, {} groups, unread {}, {}, {} tries; learn {:.1f} ms; copied {:.1f} MB "
            "in {:.1f} ms, stop {:.1f} ms; settle {:.1f} ms\n",
            name, way, static_cast<double>(report.collector.bytes) / 1e6, report.objects, report.groups.size(),
            report.unread, look.complete ? "complete" : "incomplete", look.tries, ms(look.learning),
            static_cast<double>(look.bytes) / 1e6, ms(look.copying), ms(look.stopped), ms(look.settling));
      }
    }
  }
}

}  // namespace luaspy::live::coroutines_test
