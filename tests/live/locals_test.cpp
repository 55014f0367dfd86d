// A target prints what debug.getlocal and debug.getupvalue tell of its own calls (targets/workloads/locals.lua) and waits, or works on: what luaspy
// reads of them from outside must be the same, name by name and value by value.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "attach/target.h"
#include "harness.h"
#include "luastate/variables.h"
#include "stack_reader.h"

namespace luaspy::live {
namespace {

struct Frame {
  std::string name;
  std::vector<std::string> lines;   // kind TAB name TAB value
};

std::vector<Frame> parse_truth(const std::vector<std::string>& lines) {
  std::vector<Frame> frames;
  for (const std::string& line : lines) {
    if (line.starts_with("FRAME\t")) frames.push_back({line.substr(6), {}});
    else if (!frames.empty()) frames.back().lines.push_back(line);
  }
  return frames;
}

// The Lua calls of one thread, innermost first, and what they have.
struct Look {
  struct Call {
    std::string place;   // of the function
    bool is_lua = false;
    CallVariables has;
  };
  std::vector<Call> calls;
};

// Looks at the main thread of a process as a dump does: with a stop if it runs, and variables are read while it lasts.
class Looker {
 public:
  explicit Looker(pid_t pid) : target_(std::move(*Process::open(pid)), std::chrono::seconds(5)), reader_(target_.process(), target_.memory(), {}, {}), names_(target_.memory()) {}

  // nullopt if the thread moved meanwhile.
  std::optional<Look> look(const ValueLimits& limits = {}) {
    const Thread& thread = *target_.process().threads().at(0);
    const ThreadState state = thread.state();
    if (state.kind == ThreadState::Kind::ended) return std::nullopt;
    if (state.kind == ThreadState::Kind::running) {
      Target::Stop stop(target_, thread.tid());
      if (stop.outcome() != Target::Stop::Outcome::stopped) return std::nullopt;
      return read(stop.registers(), limits);
    }
    const std::uint64_t runs = thread.run_count();
    Registers registers;
    registers.set(rip, state.pc);
    registers.set(rsp, state.sp);
    std::optional<Look> look = read(registers, limits);
    return thread.state() == state && thread.run_count() == runs ? look : std::nullopt;
  }

 private:
  std::optional<Look> read(const Registers& registers, const ValueLimits& limits) {
    Sample sample;
    StackReader::Prediction none;
    if (!reader_.read(registers, none, false) || !reader_.finish(registers, sample, none)) return std::nullopt;
    Look look;
    const std::vector<Segment> segments = reader_.lua().segments();
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Activation& activation = reader_.lua().active()[i];
      const LuaWalk& walk = *segments[i].walk;
      VariableReader variables(target_.memory(), activation.lua, activation.G, activation.L, walk, names_, limits);
      for (std::size_t call = 0; call < walk.calls.size(); ++call) {
        Look::Call& added = look.calls.emplace_back();
        added.is_lua = walk.calls[call].is_lua;
        const auto place = read_place(target_.memory(), activation.lua, walk.calls[call].proto);
        if (place) added.place = fmt::format("{}:{}", place->source, place->line_defined);
        added.has = variables.variables(call, reader_.lua().pc(i, call));
      }
    }
    return look;
  }

  Target target_;
  StackReader reader_;
  luaspy::Names names_;
};

bool is_fit(const std::string& text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// As the script writes it: it cannot tell parameters from locals.
std::string line_of(const Variable& variable) {
  CHECK(is_fit(variable.name + variable.value));
  const bool is_local = variable.kind == Variable::Kind::parameter || variable.kind == Variable::Kind::local;
  std::string value = variable.value;
  if (const std::size_t type = value.find(" (ctype"); type != std::string::npos) value.resize(type);
  return fmt::format("{}\t{}\t{}", is_local ? "local" : variable.kind == Variable::Kind::vararg ? "vararg" : "upvalue", variable.name, value);
}

// What Lua has no word for is not compared: LuaJIT's control variable of a loop over pairs(), and 5.1's varargs.
bool same(const std::string& theirs, const std::string& ours) {
  if (ours.find("\tkey index ") != std::string::npos) return theirs.starts_with("local\t(for control)\t");
  if (theirs.ends_with("\tuserdata")) return ours.starts_with(theirs);
  return theirs == ours;
}

void compare(const Frame& theirs, const CallVariables& ours, bool has_varargs) {
  INFO("function " << theirs.name);
  CHECK(std::string(ours.not_known) == "");
  std::vector<std::string> lines;
  for (const Variable& variable : ours.variables) {
    if (has_varargs || variable.kind != Variable::Kind::vararg) lines.push_back(line_of(variable));
  }
  const std::size_t count = std::max(lines.size(), theirs.lines.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string their = i < theirs.lines.size() ? theirs.lines[i] : "nothing", our = i < lines.size() ? lines[i] : "nothing";
    if (!same(their, our)) FAIL_CHECK("Lua:    " << their << "\n  luaspy: " << our);
  }
}

std::vector<const Look::Call*> lua_calls(const Look& look) {
  std::vector<const Look::Call*> calls;
  for (const Look::Call& call : look.calls) {
    if (call.is_lua) calls.push_back(&call);
  }
  return calls;
}

void check_waiting(const TargetSpec& spec, const Words& command, const char* kind) {
  INFO(spec.name << " " << spec.version << " " << kind);
  Words words = command;
  words.insert(words.end(), {workload("locals.lua"), kind});
  Running running(words);
  const std::vector<Frame> truth = parse_truth(running.read_until("READY"));
  REQUIRE(truth.size() >= 7);
  Looker looker(running.pid());
  std::optional<Look> look;
  running.await("a look at it while it waits", [&] {
    look = looker.look();
    return look && !look->calls.empty() && !look->calls[0].is_lua;
  });
  const std::vector<const Look::Call*> calls = lua_calls(*look);
  REQUIRE(calls.size() >= truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) compare(truth[i], calls[i]->has, spec.version != "5.1.4" && spec.version != "5.1.5");
}

}  // namespace

TEST_CASE("variables of a waiting program are those that it has", "[locals]") {
  for (const TargetSpec& spec : targets()) {
    if (spec.variant != "O2" && spec.kind != "debian") continue;
    check_waiting(spec, spec.command, "wait");
    check_waiting(spec, spec.command, "coroutine");
  }
}

}  // namespace luaspy::live
