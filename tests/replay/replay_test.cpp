// Saved stops (stops/*.stop) through everything that comes after a stop, without a process: the
// stack has to be the one that the file expects. And torn and hostile variants of each: no crash,
// no hang, a bounded stack.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "luastate/bytecode.h"
#include "luastate/luas.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/puc/walk_puc.h"
#include "profile/profile.h"
#include "support/load_stop.h"

namespace luaspy::replay {
namespace {

std::vector<std::string> stop_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(LUASPY_TESTS "/replay/stops")) {
    if (entry.path().extension() == ".stop") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> lines(const Stack& stack) {
  std::vector<std::string> lines;
  for (const Frame& frame : stack) lines.push_back(describe(frame, true));
  return lines;
}

}  // namespace

TEST_CASE("a saved stop gives the stack that it was saved with", "[replay]") {
  const std::vector<std::string> files = stop_files();
  REQUIRE(files.size() >= 6);
  for (const std::string& file : files) {
    const SavedStop stop = load_stop(file);
    INFO(file);
    REQUIRE(!stop.expected.empty());
    CHECK(lines(replay(stop).stack) == stop.expected);
  }
}

// As in use: the stop touches, the thread runs on, and only what does not change while it lives can
// be read after that.
TEST_CASE("what a stop touches is what its walks need", "[replay]") {
  for (const std::string& file : stop_files()) {
    const SavedStop stop = load_stop(file);
    INFO(file);
    CHECK(lines(replay_through_snapshot(stop).stack) == stop.expected);
  }
}

TEST_CASE("a look that defers says so when it has missed a state, and finds it the next time", "[replay]") {
  for (const std::string& file : stop_files()) {
    const SavedStop stop = load_stop(file);
    INFO(file);
    const Locator::ThreadStack stack = {stop.stack_start, stop.stack};
    std::vector<ActiveState> careful, hurried;
    Locator locator(*stop.machine), fresh(*stop.machine);
    locator.try_layouts(layouts_for(stop.version));
    fresh.try_layouts(layouts_for(stop.version));
    std::vector<Address> deferred;
    const auto none = [](Address) { return false; };
    const auto is_missed = [&](const std::function<bool(Address)>& is_known) {
      return !fresh.find_missed(stop.memory, stack, deferred, fresh.left_out(), fresh.mentions(), is_known).empty();
    };
    locator.locate({stop.memory, stop.registers, stack}, {}, Locator::Unknown::read, careful, deferred);
    REQUIRE(!careful.empty());
    CHECK(deferred.empty());

    fresh.locate({stop.memory, stop.registers, stack}, {}, Locator::Unknown::defer, hurried, deferred);
    CHECK(hurried.empty());
    CHECK(is_missed(none));
    CHECK(is_missed([&](Address G) { return G == careful.front().G; }));
    fresh.locate({stop.memory, stop.registers, stack}, {}, Locator::Unknown::read, hurried, deferred);
    // Known as a state, it is found even where the stack is as it was before.
    for (const Locator::ThreadStack& before : {Locator::ThreadStack{}, stack}) {
      fresh.locate({stop.memory, stop.registers, stack}, {before}, Locator::Unknown::defer, hurried, deferred);
      CHECK(!is_missed(none));
      REQUIRE(hurried.size() == careful.size());
      for (std::size_t i = 0; i < careful.size(); ++i) CHECK(hurried[i].L == careful[i].L);
    }
  }
}

TEST_CASE("torn and hostile memory gives a bounded stack of printable names", "[replay]") {
  const std::vector<std::string> files = stop_files();
  std::minstd_rand random(1);
  for (const std::string& file : files) {
    const SavedStop saved = load_stop(file);
    std::vector<Address> words;  // 8-aligned addresses of memory outside the stack: states, CallInfos, closures, Protos
    for (const auto& [address, byte] : saved.memory.bytes()) {
      if (address % 8 == 0) words.push_back(address);
    }
    const auto any = [&] { return words[random() % words.size()]; };
    for (int round = 0; round < 150; ++round) {
      SavedStop stop = saved;
      const int changes = 1 + static_cast<int>(random() % 8);
      for (int i = 0; i < changes; ++i) {
        std::uint64_t value = 0;
        switch (random() % 6) {
          case 0:
            value = any();
            break;  // a pointer to something else: cycles, wrong types
          case 1:
            value = 0;
            break;
          case 2:
            value = ~std::uint64_t{0};
            break;
          case 3:
            value = 0x7fffffff;
            break;  // a size
          case 4:
            value = stop.memory.get<std::uint64_t>(any()).value_or(1) ^ std::uint64_t{1} << random() % 64;
            break;
          default:
            value = 0x8080'1b0a'3b00'5b1bu;
            break;  // escapes, separators, invalid UTF-8
        }
        stop.memory.put(any(), std::as_bytes(std::span(&value, 1)));
      }
      if (round % 3 == 0) {
        // Torn: a part of memory cannot be read any more.
        auto from = stop.memory.bytes().lower_bound(any());
        auto to = from;
        for (int i = 0; i < 200 && to != stop.memory.bytes().end(); ++i) ++to;
        stop.memory.bytes().erase(from, to);
      }
      const Outcome outcome = replay(stop);
      CHECK(outcome.stack.size() < 5000);
      for (const Frame& frame : outcome.stack) {
        CHECK(std::none_of(frame.name.begin(), frame.name.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
        CHECK(frame.name.size() < 2000);
      }
    }
  }
}

namespace {

// The innermost state that runs at a saved stop.
ActiveState innermost(const SavedStop& stop) {
  Locator locator(*stop.machine);
  locator.try_layouts(layouts_for(stop.version));
  std::vector<ActiveState> active;
  std::vector<Address> deferred;
  locator.locate({stop.memory, stop.registers, {stop.stack_start, stop.stack}}, {}, Locator::Unknown::read, active,
                 deferred);
  REQUIRE(!active.empty());
  return active.front();
}

template <typename T>
void poke(SavedStop& stop, Address address, T value) {
  stop.memory.put(address, std::as_bytes(std::span(&value, 1)));
}

}  // namespace

namespace {

// The same stop as it would be on another processor: the same memory, but each register of
// `same` has the number and the name that it has there.
SavedStop on_machine(const SavedStop& stop, const Machine& machine,
                     const std::map<std::string_view, std::string_view>& same) {
  const auto number_of = [](const Machine& on, std::string_view name) {
    const auto found = std::ranges::find(on.register_names, name);
    REQUIRE(found != on.register_names.end());
    return static_cast<unsigned>(found - on.register_names.begin());
  };
  const auto convert = [&](const Registers& from) {
    Registers to;
    for (const auto& [here, there] : same) {
      const unsigned number = number_of(*stop.machine, here);
      if (from.knows(number)) to.set(number_of(machine, there), from[number]);
    }
    return to;
  };
  SavedStop converted = stop;
  converted.machine = &machine;
  converted.registers = convert(stop.registers);
  for (NativeFrame& frame : converted.natives) frame.registers = convert(frame.registers);
  return converted;
}

// As a file has it: written and read again.
SavedStop through_file(const SavedStop& stop) {
  const auto file = std::filesystem::temp_directory_path() / ("luaspy-" + std::to_string(::getpid()) + ".stop");
  std::ofstream out(file);
  save_stop(stop, out);
  out.close();
  const SavedStop read = load_stop(file.string());
  std::filesystem::remove(file);
  return read;
}

const Machine& aarch64() { return *find_machine("aarch64"); }

}  // namespace

TEST_CASE("a saved stop says which processor it is of", "[replay]") {
  for (const std::string& file : stop_files()) {
    const SavedStop stop = load_stop(file);
    CHECK(stop.machine->name == "x86_64");
    std::ostringstream text;
    save_stop(stop, text);
    CHECK(text.str().find("\nprocessor x86_64\n") != std::string::npos);
  }
}

// AArch64 has other registers, more of them, and more that functions preserve. Nothing on the way
// from a stop to its stack goes by x86-64's.
TEST_CASE("a saved stop of another processor gives the same stack", "[replay]") {
  const std::map<std::string_view, std::string_view> same = {
      {"rip", "pc"},  {"rsp", "sp"},  {"rbx", "x19"}, {"rbp", "x29"}, {"r12", "x20"}, {"r13", "x21"},
      {"r14", "x22"}, {"r15", "x28"}, {"rdi", "x0"},  {"rsi", "x1"},  {"rdx", "x2"},  {"rcx", "x3"},
      {"r8", "x4"},   {"r9", "x5"},   {"rax", "x8"},  {"r10", "x16"}, {"r11", "x17"}};
  int replayed = 0;
  for (const std::string& file : stop_files()) {
    const SavedStop stop = load_stop(file);
    if (puc_layout(*innermost(stop).lua) == nullptr) continue;
    INFO(file);
    const SavedStop converted = on_machine(stop, aarch64(), same);
    const SavedStop read = through_file(converted);
    CHECK(read.machine == &aarch64());
    CHECK(read.registers.pc() == stop.registers.pc());
    for (const SavedStop* const each : {&converted, &read}) {
      CHECK(lines(replay(*each).stack) == stop.expected);
      CHECK(lines(replay_through_snapshot(*each).stack) == stop.expected);
    }
    ++replayed;
  }
  CHECK(replayed >= 8);
}

// LuaJIT's virtual machine keeps what the walk needs in registers. They have other names and numbers
// on a machine that is x86-64 with its registers in reverse.
TEST_CASE("a saved stop goes by the registers that its processor has", "[replay]") {
  const Machine& x86_64 = *find_machine("x86_64");
  const auto count = static_cast<unsigned>(x86_64.register_names.size());
  const auto turned = [&](std::uint8_t number) {
    return static_cast<std::uint8_t>(number < 2 ? number : count + 1u - number);
  };
  std::map<std::string, std::string> kept;  // what `names` refers to
  std::vector<std::string_view> names = {x86_64.register_names[0], x86_64.register_names[1]};
  std::map<std::string_view, std::string_view> same = {{names[0], names[0]}, {names[1], names[1]}};
  for (unsigned number = count; number-- > 2;) {
    const std::string name(x86_64.register_names[number]);
    kept[name] = "turned_" + name;
    names.push_back(kept[name]);
    same[x86_64.register_names[number]] = kept[name];
  }
  std::vector<std::uint8_t> callee_saved;
  for (const std::uint8_t number : x86_64.callee_saved) callee_saved.push_back(turned(number));
  Machine reversed = x86_64;
  reversed.name = "reversed";
  reversed.register_names = names;
  reversed.callee_saved = callee_saved;
  for (std::uint8_t& number : reversed.first_arguments) number = turned(number);
  for (std::uint8_t* const number :
       {&reversed.luajit.base, &reversed.luajit.c_base, &reversed.luajit.pc, &reversed.luajit.dispatch})
    *number = turned(*number);
  for (const std::string& file : stop_files()) {
    const SavedStop stop = load_stop(file);
    INFO(file);
    const SavedStop converted = on_machine(stop, reversed, same);
    CHECK(converted.registers[turned(x86_64.luajit.base)] == stop.registers[x86_64.luajit.base]);
    CHECK(lines(replay(converted).stack) == stop.expected);
    CHECK(lines(replay_through_snapshot(converted).stack) == stop.expected);
  }
}

TEST_CASE("states that were built to lead astray", "[replay]") {
  for (const std::string& file : stop_files()) {
    SavedStop stop = load_stop(file);
    INFO(file);
    const ActiveState state = innermost(stop);
    if (puc_layout(*state.lua) == nullptr) continue;
    const Layout& row = *puc_layout(*state.lua);
    const Address ci = stop.memory.get<Address>(state.L + row.L_ci).value();
    const Address function = stop.memory.get<Address>(stop.memory.get<Address>(ci + row.ci_func).value()).value();
    const Address proto = stop.memory.get<Address>(function + row.lclosure_p).value();

    SECTION("a CallInfo that is its own caller: the walk ends at its limit, and says that it was cut") {
      if (row.ci_previous == no_field) continue;
      poke(stop, ci + row.ci_previous, ci);
      const std::vector<std::string> stack = lines(replay(stop).stack);
      CHECK(stack.size() < 1000);
      CHECK(std::any_of(stack.begin(), stack.end(),
                        [](const std::string& line) { return line.find("frames left out") != std::string::npos; }));
    }
    SECTION("a function of 2^31 instructions is no function: its call is dropped, the others stay") {
      poke(stop, proto + row.p_sizecode, std::uint32_t{1} << 31);
      const Outcome outcome = replay(stop);
      CHECK(outcome.quality.half_built == 1);
      CHECK(outcome.stack.size() + 1 == stop.expected.size());
    }
    SECTION("a state whose global state does not know it is no state") {
      if (row.mainthread_embedded) continue;
      poke(stop, state.G + row.G_mainthread, ci);
      const Outcome outcome = replay(stop);
      CHECK(outcome.quality.with_lua == 0);
    }
    SECTION("source text without an end, with escapes in it") {
      const Address source = stop.memory.get<Address>(proto + row.p_source).value();
      poke(stop, source + row.string_data, std::uint64_t{0x6d31'335b'1b0a'3b40});
      for (const std::string& line : lines(replay(stop).stack)) CHECK(line.find('\x1b') == std::string::npos);
    }
  }
}

namespace {

// As if the stack of `state` had been moved to `to`: its slots are there, and nothing is where they
// were.
void move_slots(SavedStop& stop, Address from, Address end, Address to) {
  auto& bytes = stop.memory.bytes();
  const auto first = bytes.lower_bound(from), last = bytes.lower_bound(end);
  REQUIRE(first != last);
  REQUIRE((bytes.lower_bound(to) == bytes.lower_bound(to + (end - from)) || to > end || to + (end - from) < from));
  const std::vector<std::pair<Address, std::byte>> moved(first, last);
  bytes.erase(first, last);
  for (const auto& [address, byte] : moved) bytes[address - from + to] = byte;
}

// The CallInfos of a state, innermost first, the base last.
std::vector<Address> call_infos(const SavedStop& stop, const Layout& row, Address L) {
  std::vector<Address> infos = {stop.memory.get<Address>(L + row.L_ci).value()};
  const bool is_array = row.ci_previous == no_field;
  const Address base = is_array ? stop.memory.get<Address>(L + row.L_base_ci).value() : L + row.L_base_ci;
  while (infos.back() != base)
    infos.push_back(is_array ? infos.back() - row.ci_size
                             : stop.memory.get<Address>(infos.back() + row.ci_previous).value());
  return infos;
}

bool leaves_offsets(const SavedStop& stop) { return stop.version == "5.4.7" || stop.version == "5.5.1"; }

}  // namespace

// ldo.c, luaD_reallocstack: L->stack, then the functions of the CallInfos, the innermost first; up
// to 5.3 L->stack_last is set between these, later after them.
TEST_CASE("while its stack is moved, each call is found where its function is", "[replay]") {
  int tried = 0;
  for (const std::string& file : stop_files()) {
    for (const std::int64_t by : {-0x8000'0000l, -0x40'0000l, 0x40'0000l, 0x8000'0000l}) {
      SavedStop stop = load_stop(file);
      const ActiveState state = innermost(stop);
      if (puc_layout(*state.lua) == nullptr) continue;
      const Layout& row = *puc_layout(*state.lua);
      const bool moves_first = row.tt_size == 4;
      if (!moves_first && !leaves_offsets(stop)) continue;  // 5.4.2 and 5.4.4 do not show the move
      if (row.ci_previous == no_field) continue;            // then a first look does not recognise 5.1's state
      const Address stack = stop.memory.get<Address>(state.L + row.L_stack).value(),
                    last = stop.memory.get<Address>(state.L + row.L_stack_last).value();
      const Address to = stack + static_cast<Address>(by);
      const std::vector<Address> infos = call_infos(stop, row, state.L);
      move_slots(stop, stack, last + 16 * 5, to);  // EXTRA_STACK (lstate.h)
      poke(stop, state.L + row.L_stack, to);
      const auto is_right = [&](const char* when) {
        INFO(file << ", moved by " << by << ": " << when);
        const Outcome outcome = replay(stop);
        CHECK(lines(outcome.stack) == stop.expected);
        CHECK(outcome.quality.relocated == 1);
        ++tried;
      };
      if (!moves_first) {
        for (const Address ci : infos)
          poke(stop, ci + row.ci_func, stop.memory.get<Address>(ci + row.ci_func).value() - stack);
      }
      is_right("no CallInfo is right");
      if (moves_first) {
        poke(stop, state.L + row.L_stack_last, last - stack + to);
        is_right("stack_last is right");
      }
      for (std::size_t i = 0; i + 2 < infos.size(); ++i) {
        const Address func = stop.memory.get<Address>(infos[i] + row.ci_func).value();
        poke(stop, infos[i] + row.ci_func, moves_first ? func - stack + to : func + to);
        is_right("some CallInfos are right");
      }
    }
  }
  CHECK(tried > 50);
}

namespace {

// `instruction`, an OP_CALL, as OP_TAILCALL (lopcodes.h of 5.1 to 5.3: the next number).
std::uint32_t as_tail_call(Bytecode bytecode, std::uint32_t instruction) {
  REQUIRE((is_call(bytecode, instruction) && !is_tail_call(bytecode, instruction)));
  REQUIRE(is_tail_call(bytecode, instruction + 1));
  return instruction + 1;
}

}  // namespace

// lvm.c, OP_TAILCALL of 5.1 to 5.3: the callee's CallInfo is linked, then it is moved over the
// caller's, in any order of fields.
TEST_CASE("a tail call is one call at each instant of it", "[replay]") {
  int tried = 0;
  for (const std::string& file : stop_files()) {
    SavedStop stop = load_stop(file);
    const ActiveState state = innermost(stop);
    if (puc_layout(*state.lua) == nullptr || puc_layout(*state.lua)->tt_size != 4) continue;
    const Layout& row = *puc_layout(*state.lua);
    const std::vector<Address> infos = call_infos(stop, row, state.L);
    const auto word = [&](Address address) { return stop.memory.get<Address>(address).value(); };
    const Address callee_slot = word(infos[0] + row.ci_func), caller_slot = word(infos[1] + row.ci_func);
    const Address callee = word(callee_slot), caller = word(caller_slot), caller_pc = word(infos[1] + row.ci_savedpc);
    const Address entry = word(word(callee + row.lclosure_p) + row.p_code);
    poke(stop, caller_pc - 4, as_tail_call(row.bytecode, stop.memory.get<std::uint32_t>(caller_pc - 4).value()));
    poke(stop, infos[0] + row.ci_savedpc, entry);
    if (row.L_savedpc != no_field) poke(stop, state.L + row.L_savedpc, entry);
    std::vector<std::string> expected(stop.expected.begin(), stop.expected.end() - 2);
    // 5.1's pc is in a register too, which the stop has of the loop. leaf is a global: no call
    // names it, but package.loaded does.
    expected.insert(expected.end(),
                    {"(...tail calls...)", row.L_savedpc != no_field ? "leaf (spin.lua:5)" : "leaf (spin.lua:4)"});
    const auto is_right = [&](const char* when) {
      INFO(file << ": " << when);
      const Outcome outcome = replay(stop);
      CHECK(lines(outcome.stack) == expected);
      CHECK(lines(replay_through_snapshot(stop).stack) == expected);
      CHECK(outcome.quality.calls_dropped == 0);
      ++tried;
    };
    is_right("nothing is moved");
    poke(stop, infos[1] + row.ci_savedpc, entry);
    is_right("the pc is moved");
    poke(stop, caller_slot, callee);
    is_right("all is moved");
    poke(stop, infos[1] + row.ci_savedpc, caller_pc);
    is_right("the function is moved");
    // That a Lua function stands at OP_TAILCALL is not enough: a hook would be elsewhere.
    poke(stop, caller_slot, caller);
    poke(stop, caller_pc - 4, stop.memory.get<std::uint32_t>(caller_pc - 4).value() - 1);
    INFO(file << ": no tail call");
    CHECK(lines(replay(stop).stack).size() == stop.expected.size());
  }
  CHECK(tried >= 16);
}

// ldo.c, luaD_precall: the CallInfo is linked, then filled. Until then it is of another call, and
// the C function that calls now has nothing that says where its callee is, as an instruction of a
// Lua function does.
TEST_CASE("a call of another function that a C function's CallInfo still has inside of it is not taken for its callee",
          "[replay]") {
  int tried = 0;
  for (const std::string& file : stop_files()) {
    SavedStop stop = load_stop(file);
    const ActiveState state = innermost(stop);
    if (puc_layout(*state.lua) == nullptr || puc_layout(*state.lua)->callstatus_size == 0 ||
        puc_layout(*state.lua)->recurses_per_call)
      continue;
    const Layout& row = *puc_layout(*state.lua);
    const std::vector<Address> infos = call_infos(stop, row, state.L);
    const auto walk_now = [&] {
      LuaWalk walk;
      walk_puc(stop.memory, stop.memory, row, state.L, {}, walk);
      return walk;
    };
    const LuaWalk whole = walk_now();
    REQUIRE((infos.size() > 2 && whole.innermost_dropped == 0 && whole.calls.size() > 1));
    if (!whole.calls[0].is_lua() || whole.calls[0].fresh || !whole.calls[1].is_lua()) continue;
    INFO(file);
    const auto set_status = [&](Address ci, std::uint32_t on, std::uint32_t off) {
      const Address at = ci + row.ci_callstatus;
      const auto change = [&](auto status) { poke(stop, at, static_cast<decltype(status)>((status | on) & ~off)); };
      if (row.callstatus_size == 1) change(stop.memory.get<std::uint8_t>(at).value());
      else if (row.callstatus_size == 2) change(stop.memory.get<std::uint16_t>(at).value());
      else change(stop.memory.get<std::uint32_t>(at).value());
    };
    const Address slot = stop.memory.get<Address>(infos[1] + row.ci_func).value();
    poke(stop, slot, Address{0x40'1000});
    if (row.tt_size == 1) poke(stop, slot + 8, row.tag_light_c);
    else poke(stop, slot + 8, std::uint32_t{row.tag_light_c});
    set_status(infos[1], row.status.c, row.status.lua);
    const LuaWalk linked = walk_now();
    CHECK(linked.innermost_dropped == 1);
    REQUIRE(linked.calls.size() == whole.calls.size() - 1);
    CHECK(!linked.calls[0].is_lua());
    set_status(infos[0], row.status.fresh, row.status.reentry);
    CHECK(walk_now().calls.size() == whole.calls.size());
    ++tried;
  }
  CHECK(tried >= 4);
}

}  // namespace luaspy::replay
