// A target prints the results of debug.getlocal and debug.getupvalue for its own calls
// (targets/workloads/locals.lua), and then waits or continues to work. What luaspy reads from
// outside must be the same, name by name and value by value.

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "attach/held_thread.h"
#include "luastate/variables.h"
#include "stack/stack_reader.h"
#include "support/harness.h"

namespace luaspy::live::locals_test {
namespace {

struct Frame {
  std::string name;
  std::vector<std::string> lines;  // kind TAB name TAB value
};

std::vector<Frame> parse_truth(const std::vector<std::string>& lines) {
  std::vector<Frame> frames;
  for (const std::string& line : lines) {
    if (line.starts_with("FRAME\t")) frames.push_back({line.substr(6), {}});
    else if (!frames.empty()) frames.back().lines.push_back(line);
  }
  return frames;
}

// The Lua calls of one thread, innermost first, and their variables.
struct Look {
  struct Call {
    std::string place;  // of the function
    bool is_lua = false;
    CallVariables has;
  };
  std::vector<Call> calls;
};

// Looks at the main thread of a process as dump does: with a stop if it runs; variables are read
// during the stop.
class Looker {
 public:
  explicit Looker(pid_t pid)
      : target_(std::move(*Process::open(pid)), std::chrono::seconds(5)),
        reader_(target_.process(), target_.memory(), stacks_, {}, {}),
        names_(target_.memory()) {}

  // nullopt if the thread moved meanwhile.
  std::optional<Look> look(const ValueLimits& limits = {}) {
    const HeldThread held(target_, target_.process().threads().at(0));
    if (!held.stands_still()) return std::nullopt;
    std::optional<Look> look = read(held.registers(), limits);
    return held.has_not_run() ? look : std::nullopt;
  }

 private:
  std::optional<Look> read(const Registers& registers, const ValueLimits& limits) {
    const StackReader::Finished* const finished = reader_.look(registers);
    if (finished == nullptr) return std::nullopt;
    Look look;
    CountingRoom room;
    const auto& frames = finished->joined.calls;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      if (frame->state == nullptr) continue;
      const ActiveState& state = *frame->state;
      const LuaCall& call = frame->walk->calls[frame->call];
      Look::Call& added = look.calls.emplace_back();
      added.is_lua = call.is_lua();
      if (const auto place = state.lua->place(target_.memory(), call.proto))
        added.place = fmt::format("{}:{}", chunk_name(place->source), place->line_defined);
      VariableReader variables(target_.memory(), state, *frame->walk, names_, limits, room);
      added.has = variables.variables(frame->call, frame->pc);
    }
    return look;
  }

  Target target_;
  StackTable stacks_;
  StackReader reader_;
  luaspy::Names names_;
};

int steps_looks = 0, steps_shown = 0, steps_on_trace = 0, outer_shown = 0;

bool is_fit(const std::string& text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The line that the script would print: it cannot distinguish parameters from locals.
std::string line_of(const Variable& variable) {
  CHECK(is_fit(variable.name + variable.value));
  static constexpr std::array kinds = {"local", "local", "vararg", "temporary", "argument", "upvalue"};
  std::string value = variable.value;
  if (const std::size_t type = value.find(" (ctype"); type != std::string::npos) value.resize(type);
  return fmt::format("{}\t{}\t{}", kinds[static_cast<std::size_t>(variable.kind)], variable.name, value);
}

// Values that Lua cannot name are not compared: LuaJIT's control variable of a loop over pairs(),
// and functions that are in no table, such as the one that 5.1's pairs() returns.
bool same(const std::string& theirs, const std::string& ours) {
  if (ours.find("\tkey index ") != std::string::npos) return theirs.starts_with("local\t(for control)\t");
  if (theirs.ends_with("\tC")) {
    return ours.starts_with(theirs.substr(0, theirs.size() - 1)) &&
           (ours.ends_with("[C]") || ours.find("\tC function 0x") != std::string::npos);
  }
  if (theirs.ends_with("\tuserdata")) return ours.starts_with(theirs);
  return theirs == ours;
}

void compare(const Frame& theirs, const CallVariables& ours) {
  INFO("function " << theirs.name);
  CHECK(std::string(ours.not_known) == "");
  std::vector<std::string> lines;
  for (const Variable& variable : ours.variables) lines.push_back(line_of(variable));
  const std::size_t count = std::max(lines.size(), theirs.lines.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string their = i < theirs.lines.size() ? theirs.lines[i] : "nothing",
                      our = i < lines.size() ? lines[i] : "nothing";
    if (!same(their, our)) FAIL_CHECK("Lua:    " << their << "\n  luaspy: " << our);
  }
}

// The calls that locals.lua prints: without the function in which the innermost one waits.
std::vector<const Look::Call*> calls_of(const Look& look) {
  std::vector<const Look::Call*> calls;
  for (const Look::Call& call : look.calls) {
    if (call.is_lua || !calls.empty()) calls.push_back(&call);
  }
  return calls;
}

// Where the innermost function starts, according to its caller's upvalue: until READY, the
// functions that print everything are further inside.
std::string innermost_place(const std::vector<Frame>& truth) {
  const std::string start = "upvalue\tinnermost\tfunction (";
  for (const std::string& line : truth[1].lines) {
    if (line.starts_with(start)) return line.substr(start.size(), line.size() - start.size() - 1);
  }
  return "?";
}

bool has_parameters(const CallVariables& has, const std::vector<std::string>& names) {
  std::vector<std::string> parameters;
  for (const Variable& variable : has.variables) {
    if (variable.kind == Variable::Kind::parameter) parameters.push_back(variable.name);
  }
  return parameters == names;
}

void check_waiting(const TargetSpec& spec, const Words& command, const char* kind) {
  INFO(spec.name << " " << spec.version << " " << kind);
  Words words = command;
  words.insert(words.end(), {workload("locals.lua"), kind});
  Running running(words);
  const std::vector<Frame> truth = parse_truth(running.read_until("READY"));
  REQUIRE(truth.size() >= 8);
  Looker looker(running.pid());
  std::optional<Look> look;
  std::vector<const Look::Call*> calls;
  running.await("a look at it while it waits", [&] {
    look = looker.look();
    calls = look ? calls_of(*look) : std::vector<const Look::Call*>();
    return calls.size() >= truth.size() && calls[0]->place == innermost_place(truth) &&
           look->calls.size() == calls.size() + 1;
  });
  REQUIRE(look->calls[0].has.variables.size() >= 2);
  CHECK(look->calls[0].has.variables[0].value == "\"*l\"");
  CHECK(look->calls[0].has.variables[1].value == "\"*n\"");
  CHECK(has_parameters(calls[0]->has, {"a", "b"}));
  CHECK(has_parameters(calls[2]->has, {"self"}));
  CHECK(has_parameters(calls[3]->has, {"missing", "missing_too"}));
  for (std::size_t i = 0; i < truth.size(); ++i) compare(truth[i], calls[i]->has);
}

// locals.lua spin: the innermost function does not call anything; values that are in use by machine
// code are not shown.
void check_working(const TargetSpec& spec, const Words& command) {
  INFO(spec.name << " " << spec.version << " working");
  Words words = command;
  words.insert(words.end(), {workload("locals.lua"), "spin"});
  Running running(words);
  std::vector<Frame> truth = parse_truth(running.read_until("READY"));
  REQUIRE(truth.size() == 9);
  Looker looker(running.pid());
  std::optional<Look> look;
  std::vector<const Look::Call*> calls;
  running.await("a look at it while it works", [&] {
    look = looker.look();
    calls = look ? calls_of(*look) : std::vector<const Look::Call*>();
    return calls.size() >= truth.size() && calls[0]->place == innermost_place(truth) &&
           look->calls.size() == calls.size();
  });
  for (std::size_t i = 0; i < truth.size(); ++i) {
    CallVariables ours = calls[i]->has;
    if (i == 0 && ours.not_known == "in machine code") {
      std::erase_if(truth[0].lines, [](const std::string& line) { return !line.starts_with("upvalue"); });
      ours.not_known = {};
    }
    for (Variable& variable : ours.variables) {
      if (i == 0 && variable.name == "loop" && variable.value == "1") variable.value = "0";
    }
    compare(truth[i], ours);
  }
}

// luajit/steps.lua: its numbers are consistent at every instant.
void check_steps(const TargetSpec& spec, const Words& command) {
  INFO(spec.name << " " << spec.version << " in step");
  Words words = command;
  words.push_back(workload("luajit/steps.lua"));
  Running running(words);
  running.read_until("READY");
  Looker looker(running.pid());
  double last_turns = 0;
  for (int i = 0; i < 60; ++i) {
    const std::optional<Look> look = looker.look();
    if (!look) continue;
    for (const Look::Call& call : look->calls) {
      if (!call.is_lua) continue;
      std::map<std::string, double> numbers;
      double progress = -1;
      for (const Variable& variable : call.has.variables) {
        const bool is_number = variable.value.find_first_not_of("-+.0123456789e") == std::string::npos;
        if (variable.kind == Variable::Kind::local && is_number) numbers[variable.name] = std::stod(variable.value);
      }
      for (const Variable& variable : call.has.variables) {
        if (variable.name == "progress" && variable.value.starts_with("{at = "))
          progress = std::stod(variable.value.substr(6));
      }
      if (call.has.not_known == "in machine code" && progress >= 0) ++steps_on_trace;
      if (numbers.contains("turns")) {
        CHECK(numbers["turns"] >= last_turns);
        CHECK(numbers["before"] == 7);
        last_turns = numbers["turns"];
        ++outer_shown;
      }
      if (!numbers.contains("again")) continue;
      if (numbers.contains("turns")) {
        // outer() has what steps() has returned, for some instructions of each turn. It does not use
        // `progress`.
        CHECK(numbers["up"] + numbers["down"] == 100);
        CHECK(numbers["up"] == numbers["again"]);
        continue;
      }
      CHECK(std::abs(numbers["up"] + numbers["down"] - 100) <= 1);
      CHECK(std::abs(numbers["up"] - numbers["again"]) <= 1);
      REQUIRE(progress >= 0);
      CHECK(std::abs(numbers["up"] - progress) <= 1);
      ++steps_shown;
    }
    ++steps_looks;
  }
}

// Linking does not change where variables are.
bool has_own_shape(const TargetSpec& luajit) {
  return luajit.kind == "debian" || luajit.variant == "gc64" || luajit.variant == "gc32" || luajit.variant == "nojit" ||
         luajit.variant == "nounwind";
}

// texluajit has no option for the compiler, and is listed twice.
std::vector<Words> commands_of(const TargetSpec& luajit) {
  if (!luajit.command.back().ends_with("/luajit")) return {luajit.command};
  if (luajit.variant == "nojit") return {command_of(luajit, Jit::off)};
  return {command_of(luajit, Jit::on), command_of(luajit, Jit::off)};
}

}  // namespace

TEST_CASE("variables of a waiting program are those that it has", "[locals][luas]") {
  for (const TargetSpec& spec : targets()) {
    if (spec.variant != "O2" && spec.kind != "debian") continue;
    check_waiting(spec, spec.command, "wait");
    check_waiting(spec, spec.command, "coroutine");
  }
}

// The script's numbers are of all sizes and signs, and of those that only one of the types can have.
TEST_CASE("variables of a Lua with other types of numbers are those that it has", "[locals][luas]") {
  REQUIRE(numbers().size() >= 8);
  for (const TargetSpec& spec : numbers()) {
    check_waiting(spec, spec.command, "wait");
    check_working(spec, spec.command);
  }
}

TEST_CASE("variables of a working program are those of the instant", "[locals][luas]") {
  for (const TargetSpec& spec : targets()) {
    if (spec.variant == "O2" || spec.kind == "debian") check_working(spec, spec.command);
  }
  for (const TargetSpec& spec : luajits()) {
    if (!has_own_shape(spec)) continue;
    for (const Words& command : commands_of(spec)) check_working(spec, command);
  }
}

TEST_CASE("of machine code no variable is shown that is not right", "[locals][luas]") {
  for (const TargetSpec& spec : luajits()) {
    if (!has_own_shape(spec)) continue;
    for (const Words& command : commands_of(spec)) check_steps(spec, command);
  }
  INFO(steps_looks << " looks, steps() shown in " << steps_shown << ", on a trace in " << steps_on_trace
                   << ", outer() in " << outer_shown);
  CHECK(steps_shown > steps_looks / 4);
  CHECK(steps_on_trace > steps_looks / 8);
  CHECK(outer_shown > steps_looks * 9 / 10);
}

// Its Table has one more field (tables.h, TableForm).
TEST_CASE("variables of a script in redis are those that it has", "[locals]") {
  const Folder folder;
  const std::string path = folder.path("socket");
  Words command = host("redis");
  const Words options = {"--port", "0", "--unixsocket", path, "--dir", folder.path(),
                         "--save", "",  "--appendonly", "no"};
  command.insert(command.end(), options.begin(), options.end());
  Running redis(command);
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  redis.await("redis to listen",
              [&] { return ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; });
  const std::string script =
      "local list, named, keys = {1, 2, 3}, {name = 'x'}, KEYS\nlocal function loop(n) while true do end "
      "end\nloop(7)\nreturn 1";
  const std::string request = fmt::format("*4\r\n$4\r\nEVAL\r\n${}\r\n{}\r\n$1\r\n1\r\n$3\r\nkey\r\n", script.size(),
                                          script);
  REQUIRE(::write(connection, request.data(), request.size()) == static_cast<ssize_t>(request.size()));
  Looker looker(redis.pid());
  std::vector<std::string> lines;
  redis.await("the script to run", [&] {
    const std::optional<Look> look = looker.look();
    lines.clear();
    if (!look || look->calls.size() < 2) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      for (const Variable& variable : look->calls[i].has.variables) lines.push_back(line_of(variable));
    }
    return lines.size() == 5;
  });
  ::close(connection);
  CHECK(lines == std::vector<std::string>{"local\tn\t7", "local\tlist\t{1, 2, 3}", "local\tnamed\t{name = \"x\"}",
                                          "local\tkeys\t{\"key\"}", lines[4]});
  CHECK(lines[4].starts_with("local\tloop\tfunction ("));
}

TEST_CASE("variables of a waiting LuaJIT are those that it has", "[locals][luas]") {
  for (const TargetSpec& spec : luajits()) {
    if (!has_own_shape(spec)) continue;
    for (const Words& command : commands_of(spec)) {
      check_waiting(spec, command, "wait");
      check_waiting(spec, command, "coroutine");
    }
  }
}

}  // namespace luaspy::live::locals_test
