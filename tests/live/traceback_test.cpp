// A target brings itself into a state, prints debug.traceback(), and waits or works there: luaspy's
// dump must show the same, frame by frame.

#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "support/harness.h"
#include "traceback.h"

namespace luaspy::live::traceback_test {
namespace {

const Words kinds = {"plain",     "gsub",        "sort",         "meta",      "pcall",    "xpcall",
                     "coroutine", "yield",       "pcallyield",   "metayield", "tailcall", "hook",
                     "gc",        "collect",     "require",      "load",      "stripped", "vararg",
                     "longchunk", "stackgrowth", "for_iterator", "close",     "deep"};

std::vector<Line> parse_dump(const nlohmann::json& thread) {
  std::vector<Line> lines;
  for (const nlohmann::json& frame : thread.at("frames")) {
    const std::string kind = frame.at("kind"), name = frame.at("name");
    if (kind == "lua")
      lines.push_back({Line::Kind::lua, base_name(frame.at("file")), name, frame.at("line"), frame.at("line_defined")});
    else if (kind == "c") lines.push_back({Line::Kind::c, {}, name});
    else if (name == "(...tail calls...)") lines.push_back({Line::Kind::tail_calls});
    else if (name.find("frames left out") != std::string::npos) lines.push_back({Line::Kind::skipped, {}, name});
  }
  return lines;
}

// A deep stack is cut in the middle, with the number of omitted frames: the total must be the depth
// that the target prints.
void check_depth(const std::vector<std::string>& said, const nlohmann::json& thread) {
  std::int64_t depth = -1, found = 0;
  int down = -1;  // the line where it is defined; the outermost one has no name: it was tail called
  for (const std::string& line : said) {
    if (line.starts_with("depth ")) depth = std::stoll(line.substr(6));
  }
  for (const nlohmann::json& frame : thread.at("frames")) {
    const std::string name = frame.at("name");
    if (name == "down") down = frame.at("line_defined");
    if (frame.at("kind") == "lua" && frame.at("line_defined") == down) ++found;
    if (name.ends_with(" frames left out]")) found += std::stoll(name.substr(1));
  }
  CHECK(found == depth + 1);  // down(depth) to down(0)
}

// proc_pid_schedstat: what it has had of CPUs, in ns.
std::int64_t run_time_ns(pid_t pid) { return std::atoll(read_file(fmt::format("/proc/{}/schedstat", pid)).c_str()); }

// A target that has brought itself into a state, and a luaspy that looks at it. luaspy watches a thread that waits for
// a CPU for a second, so several are looked at in the meantime.
struct Pair {
  std::string kind;
  std::vector<std::string> said;  // by the target
  std::unique_ptr<Running> target, dump;
};

Pair start(Words command, const std::string& script, const std::string& kind) {
  command.insert(command.end(), {workload(script), kind});
  Pair pair{kind, {}, std::make_unique<Running>(command), nullptr};
  Running& target = *pair.target;
  pair.said = target.read_until("READY");
  if (script == "spin.lua") {
    // It works when it has left what wrote READY. Then it would take half of the test's time.
    const std::int64_t before_ns = run_time_ns(target.pid());
    target.await("it works", [&] { return run_time_ns(target.pid()) > before_ns + 1'000'000; });
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(target.pid()), 10);
  }
  pair.dump = std::make_unique<Running>(Words{luaspy_program, "dump", "--json", "--mode", "all", "--interval", "0",
                                              "--pid", std::to_string(target.pid())});
  return pair;
}

void check(const TargetSpec& spec, Pair& pair) {
  const std::string& kind = pair.kind;
  const std::string dumped = pair.dump->rest();
  INFO(spec.name << " " << kind << "\n" << dumped);
  REQUIRE(pair.dump->wait() == 0);
  pair.target.reset();
  const nlohmann::json json = nlohmann::json::parse(dumped);
  std::vector<Line> theirs = parse_traceback(pair.said);
  REQUIRE(!theirs.empty());
  // The target printed its stack at `rest`; the frames inside that are io.read, leaf, or still
  // report, which said READY.
  std::vector<Line> ours = parse_dump(json.at("threads").at(0));
  while (!ours.empty() &&
         (ours.front().kind == Line::Kind::c || ours.front().name == "leaf" || ours.front().name == "report"))
    ours.erase(ours.begin());
  while (!theirs.empty() && theirs.front().kind == Line::Kind::c) theirs.erase(theirs.begin());
  // ldebug.c gives a finalizer's name to the function that it interrupted (5.3.4 to 5.4.3), or
  // calls it "__index" (before).
  if (kind == "gc") {
    for (Line& line : theirs) {
      if (line.name == "__gc" || line.name == "__index") line.name.clear();
    }
  }
  // LuaJIT names a function after its caller's current instruction, even if that calls another
  // function, which made a tail call, or is not a call (an error that is being handled). Then
  // luaspy has a different name, or none.
  if (spec.version.starts_with("LuaJIT") && (kind == "tailcall" || kind == "xpcall")) {
    for (Line& line : theirs) {
      if (line.name == "first" || line.name == "__index") line.name.clear();
    }
  }
  // Newer LuaJITs run finalizers in a separate coroutine, at which the traceback ends.
  const bool in_finalizer = (kind == "gc" || kind == "collect") &&
                            std::ranges::none_of(theirs, [](const Line& line) { return line.name == "main chunk"; });
  if (in_finalizer) {
    REQUIRE(ours.size() > theirs.size());
    const Line caller = ours[theirs.size()];
    CHECK((kind == "gc" ? same({Line::Kind::lua, "states.lua", "allocate", 144}, caller)
                        : same({Line::Kind::c, {}, "collectgarbage"}, caller)));
    ours.resize(theirs.size());
  }
  INFO("the target says:\n" << text(theirs) << "luaspy says:\n" << text(ours));
  CHECK(same_stack(theirs, ours));
  if (spec.variant != "noehframe")
    CHECK(json.at("threads").at(0).at("native_complete") == true);  // nothing marks _start as the end there
  if (kind == "deep") check_depth(pair.said, json.at("threads").at(0));
}

bool supported(const TargetSpec& spec, const std::string& kind) {
  Words command = spec.command;
  command.insert(command.end(), {workload("traceback.lua"), kind});
  static std::map<std::string, bool> known;  // by version: what a release can do does not depend on how it was built
  const std::string key = spec.version + kind;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known[key] = !run(command).out.starts_with("UNSUPPORTED");
}

const TargetSpec& any_of(const std::vector<TargetSpec>& table) {
  REQUIRE(!table.empty());
  return table[GENERATE_COPY(range<std::size_t>(0, table.size()))];
}

// Every kind on Debian's Luas and on each release as it is usually built. Builds of other shapes
// run every third kind each, and all kinds together.
void check_all(const TargetSpec& spec, const Words& command, const std::string& script) {
  const bool is_plain = spec.kind == "debian" || spec.variant == "O2" || spec.version.starts_with("LuaJIT");
  const std::size_t every = is_plain ? 1 : 3, first = std::hash<std::string>()(spec.name) % every;
  std::vector<Pair> pairs;
  for (std::size_t i = first; i < kinds.size(); i += every) {
    if (supported(spec, kinds[i])) pairs.push_back(start(command, script, kinds[i]));
    if (pairs.size() < 4 && i + every < kinds.size()) continue;
    for (Pair& pair : pairs) check(spec, pair);
    pairs.clear();
  }
}

// Below Lua is the C library, whose part of the stack has to be found by the call frame information that a
// static program has, too.
void check_in_write(const TargetSpec& spec) {
  Words command = spec.command;
  command.push_back(workload("full_pipe.lua"));
  Running running(command);
  (void)running.read_until("READY");
  nlohmann::json thread;
  running.await("it waits in write()", [&] {
    thread = dump(running.pid()).at("threads").at(0);
    return thread.contains("wait") && thread.at("wait").value("system_call", "") == "write";
  });
  Words functions;
  for (const Line& line : parse_dump(thread)) {
    if (line.kind == Line::Kind::lua) functions.push_back(line.name);
  }
  INFO(spec.name << "\n" << thread.dump(2));
  CHECK(functions == Words{"inner", "outer", "main chunk"});
  CHECK(thread.at("native_complete") == true);
}

}  // namespace

TEST_CASE("a target that waits in write() has all of its stack", "[traceback_waiting][luas]") {
  check_in_write(any_of(targets()));
}

TEST_CASE("a waiting target's own traceback is what dump says", "[traceback_waiting][luas][smoke]") {
  const TargetSpec& spec = any_of(targets());
  check_all(spec, spec.command, "traceback.lua");
}

TEST_CASE("a working target's own traceback is what dump says", "[traceback_working][luas]") {
  const TargetSpec& spec = any_of(targets());
  check_all(spec, spec.command, "spin.lua");
}

// One third of the kinds each.
TEST_CASE("the traceback of a Lua with other types of numbers is what dump says", "[traceback_working][luas]") {
  const TargetSpec& spec = any_of(numbers());
  check_all(spec, spec.command, "spin.lua");
}

TEST_CASE("a waiting LuaJIT's own traceback is what dump says", "[luajit_traceback_waiting][luas][smoke]") {
  const TargetSpec& spec = any_of(luajits());
  check_all(spec, spec.command, "traceback.lua");
}

TEST_CASE("a working LuaJIT's own traceback is what dump says", "[luajit_traceback_working][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared(
      {"debian-luajit-bookworm", "debian-luajit-trixie", "debian-luajit-experimental", "debian-luajit2-bookworm",
       "luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc64", "luajit-2.1.20220320-gc32", "luajit-2.1.newest-gc32",
       "luajit-2.1.tarantool2.6-gc64", "luajit-2.1.tarantool2.6-gc32"})));
  const Jit jit = GENERATE(Jit::off, Jit::on);
  check_all(target(name), command_of(target(name), jit), "spin.lua");
}

}  // namespace luaspy::live::traceback_test
