// What LuaJIT's compiler has decided, where memory is what a test says, or no LuaJIT's at all.
// tests/jit/jit_v.py compares it with what real ones report.

#include "luastate/luajit/luajit_jit.h"

#include <catch2/catch.hpp>

#include <bit>
#include <vector>

#include "luastate/luajit/jit_starts.h"
#include "luastate/luajit/trace_errors.h"
#include "support/dice.h"
#include "support/jit_window.h"

using namespace luaspy;

namespace {

std::uint32_t ins(const LuajitLayout& layout, std::string_view name, unsigned a, unsigned d) {
  for (std::uint32_t number = 0; number < 256; ++number) {
    if (opcode_name(layout, number) == name) return number | a << 8 | d << 16;
  }
  FAIL(name);
  return 0;
}

}  // namespace

TEST_CASE("attempts of a penalty") {
  CHECK(attempts_of(0) == 0);
  CHECK(attempts_of(71) == 0);
  // Doubled each time, with 0 or 15 more: both ends of what LuaJIT may have.
  for (unsigned least = 72, most = 72, attempts = 1; most <= 60000; ++attempts) {
    CHECK(attempts_of(least) == attempts);
    CHECK(attempts_of(most) == attempts);
    least *= 2, most = most * 2 + 15;
  }
}

TEST_CASE("the compiler's state is found") {
  for (const bool gc64 : {true, false}) {
    INFO(gc64);
    const LuajitLayout layout = jit_layout_of(gc64);
    const LuajitLua lua(layout);
    JitWindow memory;
    put_parameters(memory);
    const std::optional<JitFields> fields = find_jit_fields(memory, layout, jit_G);
    REQUIRE(fields);
    CHECK(fields->G_param == param_at);
    CHECK(jit_G + fields->G_penalty == penalty_at(layout, 0));
    LuajitJit reader(memory, lua, jit_G);
    std::optional<JitInstant> now = reader.instant();
    REQUIRE(now);
    CHECK(now->penalties.empty());
    CHECK(now->parameters.maxtrace == 1000);
    CHECK(now->parameters.hotexit == 10);
    CHECK(now->parameters.maxmcode == 512);
    CHECK_FALSE(now->has_machine_code);
    put_penalty(memory, layout, 3, {jit_start + 0x4000, 144, 7});
    put_penalty(memory, layout, 63, {jit_start + 0x5000, 60000, 200});
    now = reader.instant();
    REQUIRE(now);
    CHECK(now->penalties == std::vector<JitPenalty>{{jit_start + 0x4000, 144, 7}, {jit_start + 0x5000, 60000, 200}});
    CHECK(reader.traces().empty());
    CHECK(reader.is_on() == false);
    memory.put(jit_G + layout.G_hookmask + 1, std::uint8_t{0x10});
    CHECK(reader.is_on() == true);
  }
}

TEST_CASE("memory that is no compiler's is none") {
  const LuajitLayout layout = jit_layout_of(true);
  const LuajitLua lua(layout);
  JitWindow memory;
  CHECK_FALSE(find_jit_fields(memory, layout, jit_G));
  LuajitJit reader(memory, lua, jit_G);
  CHECK_FALSE(reader.instant());
  CHECK_FALSE(reader.is_on());
  // Parameters alone are not enough: what follows has to be a ring of penalties.
  put_parameters(memory);
  put_penalty(memory, layout, 5, {3, 144, 7});
  CHECK_FALSE(find_jit_fields(memory, layout, jit_G));
  put_penalty(memory, layout, 5, {jit_start, 5, 7});
  CHECK_FALSE(find_jit_fields(memory, layout, jit_G));
  // A program that sets most of them is not known.
  put_penalty(memory, layout, 5, {});
  CHECK(find_jit_fields(memory, layout, jit_G));
  for (std::size_t i = 0; i < 10; ++i) memory.put(jit_G + param_at + 4 * i, std::int32_t{77});
  CHECK_FALSE(find_jit_fields(memory, layout, jit_G));
}

TEST_CASE("any memory is read within bounds") {
  Dice dice;
  for (int i = 0; i < 300; ++i) {
    const bool gc64 = i % 2 == 0;
    const LuajitLayout layout = jit_layout_of(gc64);
    const LuajitLua lua(layout);
    JitWindow memory;
    // Words that are small numbers, addresses in the window, or anything.
    for (Address at = jit_start; at < jit_start + memory.bytes.size(); at += 8) {
      const std::uint64_t kind = dice(4);
      memory.put(at, kind == 0   ? std::uint64_t{0}
                     : kind == 1 ? std::uint64_t{dice(16)}
                                 : jit_start + 8 * std::uint64_t{dice(1 << 13)});
    }
    put_parameters(memory);
    for (std::size_t slot = 0; slot < jit_layout::penalty_slots; ++slot) put_penalty(memory, layout, slot, {});
    memory.put(penalty_at(layout, jit_layout::penalty_slots), std::uint32_t{0});
    for (Address group = penalty_at(layout, 0) - 128; group < penalty_at(layout, 0); group += 8)
      memory.put(group, std::uint64_t{0});
    LuajitJit reader(memory, lua, jit_G);
    memory.reads = 0;
    (void)reader.instant();
    (void)reader.traces();
    std::vector<Address> found;
    (void)reader.find_prototypes(1000, found);
    CHECK(reader.strings(1000).longest.size() <= 5);
    for (Address at = jit_start; at < jit_start + 0x1000; at += 0x100) {
      (void)reader.function(at);
      (void)reader.prototype_of(at);
      (void)reader.is_blacklisted(at);
      (void)reader.trace(at);
    }
    CHECK(found.size() <= 1000);
    CHECK(memory.reads < 200'000);
  }
}

TEST_CASE("reasons have names by release") {
  LuajitLayout layout = jit_layout_of(true);
  CHECK(trace_error(layout, 8, {}, "") == "leaving loop in root trace");
  CHECK(trace_error(layout, 7, {JitDetail::Kind::number, 51}, "") == "NYI: bytecode FNEW");
  CHECK(trace_error(layout, 7, {}, "") == "NYI: bytecode (which one was not seen)");
  CHECK(trace_error(layout, 7, {JitDetail::Kind::number, 200}, "") == "NYI: bytecode 200");
  CHECK(trace_error(layout, 15, {JitDetail::Kind::function, 0, 1}, "table.concat") ==
        "NYI: unsupported variant of FastFunc table.concat");
  CHECK(trace_error(layout, 34, {}, "") == "NYI: register coalescing too complex");
  CHECK(trace_error(layout, 37, {}, "") == "reason 37");
  CHECK(trace_error_advice(layout, 37, {}).empty());
  CHECK_FALSE(trace_error_advice(layout, 7, {JitDetail::Kind::number, 51}).empty());
  layout = jit_layout_of(false);
  layout.is_20 = true;
  layout.first_header = 85;
  CHECK(trace_error(layout, 6, {}, "") == "leaving loop in root trace");
  CHECK(trace_error(layout, 5, {JitDetail::Kind::number, 49}, "") == "NYI: bytecode FNEW");
  CHECK(trace_error(layout, 14, {}, "pairs") == "NYI: FastFunc pairs");
  CHECK(trace_error(layout, 35, {}, "") == "reason 35");
}

TEST_CASE("what an abort says is decoded") {
  for (const bool gc64 : {true, false}) {
    const LuajitLua lua(jit_layout_of(gc64));
    CHECK(jit_detail(lua, std::bit_cast<std::uint64_t>(51.0)) == JitDetail{JitDetail::Kind::number, 51});
    CHECK(jit_detail(lua, ~std::uint64_t{0}).kind == JitDetail::Kind::none);
    for (const double number : {1e300, -1.0, 0.5, 70000.0})
      CHECK(jit_detail(lua, std::bit_cast<std::uint64_t>(number)).kind == JitDetail::Kind::unknown);
    const Address function = 0x12345678;
    const std::uint64_t type = gc64 ? (~std::uint64_t{8}) << 47 : (~std::uint64_t{8}) << 32;
    CHECK(jit_detail(lua, type | function) == JitDetail{JitDetail::Kind::function, 0, function});
  }
}

TEST_CASE("where traces may begin") {
  using State = JitStart::State;
  const LuajitLayout layout = jit_layout_of(true);
  Prototype prototype;
  prototype.bytecode = Bytecode::luajit;
  prototype.line_defined = 10, prototype.last_line_defined = 30;
  const auto jump = [](int by) { return static_cast<unsigned>(0x8000 + by); };
  prototype.code = {ins(layout, "IFUNCF", 4, 0), ins(layout, "FORI", 0, jump(3)),   ins(layout, "MOV", 1, 2),
                    ins(layout, "JFORL", 0, 5),  ins(layout, "ISNEXT", 4, jump(1)), ins(layout, "MOV", 1, 2),
                    ins(layout, "ITERN", 4, 0),  ins(layout, "ITERL", 4, jump(-3)), ins(layout, "ILOOP", 4, jump(2)),
                    ins(layout, "MOV", 1, 2),    ins(layout, "JMP", 4, jump(-3)),   ins(layout, "LOOP", 4, 0xffff)};
  for (int line = 10; line < 22; ++line) prototype.lines.push_back(line);
  const std::uint32_t forl = ins(layout, "FORL", 0, jump(-2));
  const std::vector<JitStart> starts = find_starts(
      layout, prototype, [&](std::uint32_t instruction) { return instruction >> 16 == 5 ? forl : 0; });
  REQUIRE(starts.size() == 5);
  CHECK(starts[0].state == State::blacklisted);
  CHECK((starts[1].position == 3 && starts[1].state == State::compiled && starts[1].trace == 5));
  CHECK((starts[1].first_line == 12 && starts[1].last_line == 13));
  CHECK((starts[2].position == 6 && starts[2].also == 7 && starts[2].state == State::open));
  CHECK((starts[2].first_line == 15 && starts[2].last_line == 17));
  CHECK((starts[3].position == 8 && starts[3].state == State::blacklisted && starts[3].last_line == 20));
  CHECK((starts[4].first_line == 21 && starts[4].last_line == 21));  // its end is nowhere
  prototype.code = {ins(layout, "FUNCV", 4, 0)};
  CHECK(find_starts(layout, prototype, [](std::uint32_t) { return 0U; }).at(0).state == State::never);
  prototype.code.clear();
  CHECK(find_starts(layout, prototype, [](std::uint32_t) { return 0U; }).empty());
}
