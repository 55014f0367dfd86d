// The difficult parts of LuaJIT: functions inlined into traces, side traces, subroutines of its
// interpreter, callbacks from C, traces that come and go. The functions of each workload can form
// only a few stacks, so that all samples can be checked.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::luajit_test {
namespace {

struct Workload {
  const char* file;
  std::vector<Words> stacks;  // of functions, outermost first; a sample shows one of these or the outer part of one
  Words seen;                 // each in at least a twentieth of the samples
  Words seen_in_traces;       // also, when compiled: what a trace does between two guards counts for its last guard
};

const Workload workloads[] = {
    {"inlined.lua", {{"loop", "outer", "middle", "leaf"}}, {"leaf"}, {"loop"}},
    {"sidetrace.lua", {{"work", "usual"}, {"work", "rare"}}, {"usual", "rare"}, {"work"}},
    {"helpers.lua",
     {{"modulo"}, {"rounded", "math.floor"}, {"rounded", "math.ceil"}, {"power"}},
     {"modulo", "rounded", "power"},
     {"rounded", "power"}},
    {"callbacks.lua",
     {{"sorted", "table.sort", "less", "key"},
      {"replaced", "string.gsub", "replace", "shorten", "string.sub"},
      {"replaced", "string.gsub", "replace", "string.sub"}},
     {"table.sort", "less", "string.gsub", "replace"},
     {"table.sort", "less", "string.gsub", "replace"}},
    {"qsort.lua",
     {{"resume", "body", "sort", "qsort", "compare", "key"},
      {"resume", "body", "sort", "qsort", "compare", "__index"},
      {"resume", "body", "sort", "__index"},
      {"resume", "body", "fill", "__newindex"},
      {"resume", "body", "coroutine.yield"}},
     {"compare"},
     {"compare"}},
    {"coroutines.lua",
     {{"coroutine.resume", "awake", "work"}, {"coroutine.resume", "awake", "coroutine.yield"}},
     {"work"},
     {"work"}},
    {"finalizers.lua",
     {{"litter", "of_lua", "newproxy"},
      {"litter", "of_lua", "getmetatable"},
      {"litter", "of_c", "ffi.new"},
      {"litter", "of_c", "ffi.gc"},
      {"litter", "ffi.gc"},
      {"litter", "tostring"}},
     {"tidy"},
     {"tidy"}},
    {"flush.lua", {{"outer", "middle", "leaf"}, {"jit.flush"}}, {"leaf"}, {"leaf"}},
};

// A number of the summary; `otherwise` if it does not have it.
double number(const std::string& summary, const std::string& pattern, double otherwise) {
  std::smatch match;
  return std::regex_search(summary, match, std::regex(pattern)) ? std::stod(match[1]) : otherwise;
}

struct Recorded {
  std::vector<FoldedStack> stacks;
  std::string summaries;
  double native_complete = 100, unusable = 0;  // the worst of all recordings, in percent
};

// Records a busy program until there are enough samples, however little CPU time it gets.
Recorded record(const Running& running) {
  Recorded recorded;
  std::int64_t samples = 0;
  for (int tries = 0; samples < 300 && tries < 30; ++tries) {
    const Finished finished = luaspy({"record", "-r", "1000", "--max-stopped", "100", "-d", "0.5", "-f", "folded", "-o",
                                      "-", "--pid", std::to_string(running.pid())});
    recorded.summaries += finished.err;
    if (finished.status == 11) continue;
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    for (const FoldedStack& stack : parse_folded(finished.out)) {
      samples += stack.count;
      recorded.stacks.push_back(stack);
    }
    recorded.native_complete = std::min(recorded.native_complete, number(finished.err, "([0-9.]+) % reach", 0));
    recorded.unusable = std::max(recorded.unusable, number(finished.err, "no Lua call readable ([0-9.]+) %", 0));
  }
  INFO(recorded.summaries);
  REQUIRE(samples >= 300);
  return recorded;
}

// The functions of a sample inside the main chunk, outermost first. Lua functions have the names
// that the script gives them.
class Names {
 public:
  explicit Names(const std::string& file) : file_("/" + file + ":") {
    std::istringstream script(read_file(workload("luajit/" + file)));
    static const std::regex definition("function ([a-z_]+)");
    std::smatch match;
    for (std::string line; std::getline(script, line);)
      by_line_.push_back(std::regex_search(line, match, definition) ? match[1].str() : "");
  }
  Words of(const FoldedStack& stack) const {
    Words names;
    bool inside = false;
    for (const std::string& frame : stack.frames) {
      const std::size_t place = frame.find(file_);
      if (inside && frame.ends_with(" [C]")) names.push_back(frame.substr(0, frame.size() - 4));
      else if (inside && place != std::string::npos)
        names.push_back(by_line_.at(std::stoul(frame.substr(place + file_.size())) - 1));
      inside |= frame.starts_with("main chunk ");
    }
    return names;
  }

 private:
  std::string file_;
  std::vector<std::string> by_line_;
};

// A C function is named by its address if its caller does not name it.
bool starts_with(const Words& stack, const Words& outer) {
  return outer.size() <= stack.size() &&
         std::equal(outer.begin(), outer.end(), stack.begin(), [](const std::string& shown, const std::string& name) {
           return shown == name || shown.starts_with("luajit+0x");
         });
}

// A finalizer may run wherever memory is allocated.
bool possible(const Workload& workload, const Words& names) {
  const auto finalizer = std::ranges::find(names, "finalizer");
  return std::ranges::any_of(workload.stacks,
                             [&](const Words& stack) {
                               return starts_with(stack, {names.begin(), finalizer});
                             }) &&
         starts_with({"finalizer", "tidy"}, {finalizer, names.end()});
}

void check(const TargetSpec& spec, Jit jit, const Workload& script) {
  Words command = command_of(spec, jit);
  command.push_back(workload(std::string("luajit/") + script.file));
  Running running(command);
  running.read_until("READY");
  const Recorded recorded = record(running);
  INFO(Catch::StringMaker<Words>::convert(command) << "\n" << recorded.summaries);
  CHECK(running.alive());

  const Names names(script.file);
  std::int64_t samples = 0, impossible = 0, not_joined = 0;
  std::string impossible_ones;
  std::map<std::string, std::int64_t> seen;
  for (const FoldedStack& stack : recorded.stacks) {
    const Words functions = names.of(stack);
    samples += stack.count;
    for (const std::string& function : std::set<std::string>(functions.begin(), functions.end()))
      seen[function] += stack.count;
    if (std::ranges::find(stack.frames, "[native and Lua frames not joined]") != stack.frames.end())
      not_joined += stack.count;
    if (possible(script, functions)) continue;
    impossible += stack.count;
    impossible_ones += fmt::format("{} {}\n", stack.count, Catch::StringMaker<Words>::convert(stack.frames));
  }
  CAPTURE(samples, impossible_ones, not_joined);
  CHECK(impossible * 1000 <= (jit == Jit::on ? 10 : 1) * samples);  // a trace may just be entered or left
  CHECK(not_joined * 1000 <= samples);
  CHECK(recorded.native_complete >= 99.9);
  CHECK(recorded.unusable <= 2);  // a call may just be made, with an incomplete frame
  for (const std::string& function : jit == Jit::on ? script.seen_in_traces : script.seen) {
    INFO(function << " in " << seen[function]);
    CHECK(seen[function] * 50 >= samples);  // the rarest has 4 to 10 %, by machine and by LuaJIT
  }
}

}  // namespace

TEST_CASE("traces, callbacks and coroutines of LuaJIT", "[luajit_hard][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared(
      {"debian-luajit-bookworm", "debian-luajit-experimental", "luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc64",
       "luajit-2.1.20220320-gc32", "luajit-2.1.newest-gc32", "luajit-2.1.tarantool2.6-gc64"})));
  const Jit jit = GENERATE(Jit::off, Jit::on);
  for (const Workload& script : workloads) check(target(name), jit, script);
}

// programs/callback.c: C calls a callback of the FFI in a loop, and was not called by Lua.
TEST_CASE("a callback from C with no Lua below it", "[luajit_hard][luas]") {
  const std::string version = source_version(GENERATE_COPY(from_range(prepared(
      {"2.0.20260330-gc32", "2.1.20170501-gc64", "2.1.20220320-gc64", "2.1.newest-gc32", "2.1.tarantool2.6-gc64"}))));
  const Folder folder;
  Running running({compile(folder, "callback", version)});
  running.read_until("READY");
  const Recorded recorded = record(running);
  INFO(version << "\n" << recorded.summaries);
  std::int64_t samples = 0, right = 0, leaf = 0;
  for (const FoldedStack& stack : recorded.stacks) {
    Words functions;  // from the C loop inwards, until the first that is neither that nor Lua
    for (const std::string& frame : stack.frames) {
      const std::string function = frame.starts_with("call_forever ") ? "call_forever"
                                   : frame.ends_with("(callback:4)")  ? "on_call"
                                   : frame.ends_with("(callback:3)")  ? "leaf"
                                                                      : "";
      if (!function.empty()) functions.push_back(function);
    }
    samples += stack.count;
    right += starts_with({"call_forever", "on_call", "leaf"}, functions) && !functions.empty() ? stack.count : 0;
    leaf += functions.size() == 3 ? stack.count : 0;
  }
  CHECK((samples - right) * 1000 <= samples);
  CHECK(leaf * 2 >= samples);
  CHECK(recorded.native_complete >= 99.9);
}

TEST_CASE("two Luas in one process, one called by the other", "[luajit_hard][all]") {
  const std::string newest = target("luajit-2.1.newest-dlopened").core, old = core_of_host("neovim"),
                    puc = core_of_host("nmap");
  const auto [first, second] = GENERATE_COPY(std::pair(newest, puc), std::pair(puc, newest), std::pair(newest, old),
                                             std::pair(old, newest));
  const Folder folder;
  Running running({compile(folder, "two"), first, second});
  running.read_until("READY");
  for (int look = 0; look < 5; ++look) {
    const nlohmann::json json = dump(running.pid());
    INFO(first << " calls " << second << "\n" << json.dump(2));
    CHECK(json.at("lua").size() == 2);
    Words stack;
    for (const nlohmann::json& frame : json.at("threads").at(0).at("frames")) {
      if (frame.at("kind") == "lua" && frame.at("name") != "leaf_2") stack.push_back(frame.at("name"));
      CHECK(frame.at("kind") != "marker");
    }
    CHECK(stack == Words{"loop_2", "main chunk", "inner_1", "outer_1", "main chunk"});
    CHECK(json.at("threads").at(0).at("native_complete") == true);
  }
}

TEST_CASE("the VM state and the trace and the near line of a sample", "[luajit_hard][luas]") {
  const TargetSpec spec = target(GENERATE_COPY(
      from_range(prepared({"debian-luajit-bookworm", "luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc32"}))));
  const Jit jit = GENERATE(Jit::off, Jit::on);
  Words command = command_of(spec, jit);
  command.push_back(workload("luajit/inlined.lua"));
  Running running(command);
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid());
  std::int64_t all = 0, in_code = 0, interpreted = 0, in_trace = 0, near = 0;
  std::string summaries;
  for (int tries = 0; all < 100 && tries < 30; ++tries) {
    const Finished recorded = luaspy({"record", "-r", "500", "--max-stopped", "100", "-d", "0.7", "--vmstate",
                                      "--traces", "--lines", "-f", "folded", "-o", "-", "--pid", pid});
    summaries += recorded.err;
    for (const FoldedStack& stack : parse_folded(recorded.out)) {
      all += stack.count;
      in_code += stack.frames.front() == "[machine code]" ? stack.count : 0;
      interpreted += stack.frames.front() == "[interpreter]" ? stack.count : 0;
      const std::string& leaf = stack.frames.back();
      static const std::regex trace(
          "\\[trace [0-9]+ .*inlined\\.lua:[0-9]+(, from trace [0-9]+ exit [0-9]+)?, [0-9]+ bytes\\]");
      const bool is_trace = std::regex_match(leaf, trace);
      in_trace += is_trace ? stack.count : 0;
      near += is_trace && stack.frames[stack.frames.size() - 2].find("inlined.lua:~") != std::string::npos ? stack.count
                                                                                                           : 0;
    }
  }
  INFO(spec.name << " " << summaries);
  REQUIRE(all >= 100);
  CAPTURE(all, in_code, interpreted, in_trace, near);
  if (jit == Jit::off) {
    CHECK(10 * interpreted >= 9 * all);
    CHECK(in_code == 0);
    CHECK(in_trace == 0);
    CHECK(summaries.find("in: interpreter ") != std::string::npos);
  } else {
    CHECK(10 * in_code >= 9 * all);
    CHECK(2 * in_trace >= all);  // the rest is in functions that the trace calls
    CHECK(near == in_trace);
    CHECK(summaries.find("in: machine code ") != std::string::npos);
  }
  const nlohmann::json dumped = nlohmann::json::parse(luaspy({"dump", "--json", "--pid", pid}).out);
  CHECK(dumped.at("lua").size() == 1);
  CHECK(dumped.at("lua").at(0).at("version").get<std::string>() == spec.version);
  CHECK(dumped.at("threads").at(0).contains("vm_state"));
}

}  // namespace luaspy::live::luajit_test
