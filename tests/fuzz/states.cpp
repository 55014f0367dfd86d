// lua_States in hostile memory: which of them run, their calls, names and bytecode (puc, luajit),
// variables and values (locals), traces (snapshots), all coroutines (heap). An input: the number of
// a saved stop, then changes to its memory (fake_memory.h).

#include "heap/coroutines.h"
#include "luastate/lua_inspector.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/traces.h"
#include "luastate/luas.h"
#include "luastate/variables.h"
#include "stack/stack_namer.h"
#include "support/fake_memory.h"

namespace luaspy::fuzz {
namespace {

WalkLimits limits() {
  WalkLimits limits;
  limits.count_left_out = true;
  return limits;
}

// What a look at one thread may read. A walk of a stack of 500 calls takes 4 reads per call, and
// names of 500 functions about 20 each. Of a deeper stack, at most 1 000 000 calls are counted
// (LUAI_MAXCCALLS, luai_maxcstack), for two states; locating the states takes 2 reads per call.
constexpr std::int64_t most_reads = 4'000'000, most_bytes = std::int64_t{1} << 30;

struct Look {
  Look(const Image& from, Input& input)
      : image(from),
        memory(from, input),
        stack_bytes(memory.bytes(from.stop.stack_start, from.stop.stack.size())),
        reader(memory, memory, limits(), *from.stop.machine) {
    memory.bounded("locate", 5'000'000, 256 << 20, [&] {
      reader.try_layouts(layouts_for(image.stop.version));
      reader.locate({memory, image.stop.registers, stack()}, {}, true, located);
    });
    memory.bounded("walk", most_reads, most_bytes, [&] {
      const LookMemory look{image.stop.registers, stack(), memory, memory};
      matched = match(reader, image.stop, look, reader.walk(located, look), image.stop.natives);
    });
    memory.bounded("label", most_reads, most_bytes, [&] {
      joined = join(reader, image.stop, std::move(matched), {}, memory);
      judge(joined, quality);
      StackTable stacks;
      frames = stacks.frames_of(StackNamer(stacks).name(reader, image.stop, joined, memory));
    });
  }
  Locator::ThreadStack stack() const { return {image.stop.stack_start, stack_bytes}; }

  const Image& image;
  FakeMemory memory;
  std::vector<std::byte> stack_bytes;
  LuaInspector reader;
  Located located;
  Matched matched;
  Joined joined;
  Quality quality;
  Stack frames;
};

void expect_sound(const Frame& frame) {
  expect_printable(frame.name, 2000, "a frame's name");
  expect_printable(frame.file, 2000, "a frame's file");
  expect(frame.line >= 0 && frame.line_defined >= 0, "lines are not negative");
}

void look_at(const Image& image, Input& input) {
  const Look look(image, input);
  expect(look.joined.from.lua.active().size() <= 1000, "some states are active");
  expect(look.frames.size() < 5000, "a stack is bounded");
  for (const Frame& frame : look.frames) expect_sound(frame);
}

}  // namespace

void puc(Bytes bytes) {
  Input input(bytes);
  look_at(images()[input.take<std::uint8_t>() % puc_images()], input);
}

void luajit(Bytes bytes) {
  Input input(bytes);
  const std::size_t first = puc_images(), count = images().size() - first;
  look_at(images()[first + input.take<std::uint8_t>() % count], input);
}

void locals(Bytes bytes) {
  Input input(bytes);
  const Image& image = images()[input.take<std::uint8_t>() % images().size()];
  const bool verbose = input.take<std::uint8_t>() % 8 == 7;
  Look look(image, input);
  const ValueLimits values = verbose ? verbose_limits : ValueLimits{};
  const LuaWalk* walk = nullptr;
  CountingRoom room;
  std::optional<VariableReader> variables;
  int calls = 0;
  for (const StackCall& labelled : look.joined.calls) {
    if (labelled.state == nullptr || calls++ == 30) continue;
    if (labelled.walk != walk) {
      walk = labelled.walk;
      variables.emplace(look.memory, *labelled.state, *walk, look.reader.names(), values, room);
    }
    look.memory.bounded("variables", 2'000'000, 256 << 20, [&] {
      const CallVariables found = variables->variables(labelled.call, labelled.pc);
      expect(found.variables.size() <= values.variables + 1, "variables are counted");
      for (const Variable& variable : found.variables) {
        expect_printable(variable.name, 1000, "a variable's name");
        expect_printable(variable.value, 8 * values.text_bytes, "a value");
      }
    });
  }
}

void snapshots(Bytes bytes) {
  Input input(bytes);
  const std::size_t first = puc_images(), count = images().size() - first;
  const Image& image = images()[first + input.take<std::uint8_t>() % count];
  const std::uint16_t where = input.take<std::uint16_t>();
  Look look(image, input);
  if (look.joined.from.lua.active().empty()) return;
  const ActiveState& state = look.joined.from.lua.states[0].activation;
  const LuajitLayout* const layout = luajit_layout(*state.lua);
  if (layout == nullptr) return;
  Traces traces(look.memory);
  look.memory.bounded("traces", 2'000'000, 256 << 20, [&] {
    const Trace* trace = traces.numbered(*layout, state.G, 1 + where % 8);
    if (trace == nullptr) trace = traces.find(*layout, state.G, image.stop.registers.pc());
    if (trace == nullptr) return;
    const Trace copy = *trace;
    const Address base = look.memory.get<Address>(state.L + layout->L_base).value_or(0);
    for (std::uint32_t i = 0; i < 16; ++i) {
      const Address pc = copy.mcode + (copy.size != 0 ? (where + i * 64) % copy.size : 0);
      for (const InlinedCode& code : {traces.decode(state.G, state.L, copy, pc, base, look.memory),
                                      traces.at_exit(state.G, state.L, copy, where / 16 + i, base, look.memory)})
        expect(code.frames.size() <= 1000, "inlined frames are counted");
    }
  });
}

void heap(Bytes bytes) {
  Input input(bytes);
  const Image& image = images()[input.take<std::uint8_t>() % images().size()];
  Look look(image, input);
  std::vector<Mapping> mappings;
  for (const Image::Run& run : image.runs) {
    if (!mappings.empty() && mappings.back().end >= (run.start & ~Address{4095}))
      mappings.back().end = (run.end() + 4095) & ~Address{4095};
    else
      mappings.push_back({.start = run.start & ~Address{4095},
                          .end = (run.end() + 4095) & ~Address{4095},
                          .readable = true,
                          .writable = true});
  }
  const AddressSpace space(mappings);
  std::vector<std::vector<ActiveState>> active = {look.joined.from.lua.active()};
  look.memory.bounded("coroutines", 8'000'000, most_bytes, [&] {
    Coroutines coroutines(look.memory, {.copy_bytes = 64 << 20, .walk = limits(), .most_coroutines = 1 << 10});
    look.reader.set_space(space);
    look.reader.find_states(space);
    coroutines.find(space, look.reader.global_states());
    coroutines.copy();
    if (!coroutines.confirm(active)) return;
    for (const StateReport& report : coroutines.report(look.reader.names(), image.stop)) {
      for (const CoroutineGroup& group : report.groups) {
        expect(group.count > 0 && group.stack.size() < 5000, "coroutines have bounded stacks");
        for (const Frame& frame : group.stack) expect_sound(frame);
        expect_sound(group.began);
      }
    }
  });
}

}  // namespace luaspy::fuzz
