#include "support/load_stop.h"
#include "base/mode.h"
#include "luastate/luas.h"
#include "stack/one_stack.h"
#include "stack/snapshot.h"
#include "stack/stack_namer.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace luaspy::replay {
namespace {

unsigned register_number(const Machine& machine, const std::string& name) {
  const auto found = std::ranges::find(machine.register_names, name);
  if (found == machine.register_names.end())
    throw std::runtime_error(std::string(machine.name) + " has no register " + name);
  return static_cast<unsigned>(found - machine.register_names.begin());
}

const Machine& machine_named(const std::string& name) {
  const Machine* const machine = find_machine(name);
  if (machine == nullptr) throw std::runtime_error("no processor " + name);
  return *machine;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

void load_into(SavedStop& stop, const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word >> std::hex;
    const auto rest = [&] {
      std::string text;
      std::getline(words >> std::ws, text);
      return text;
    };
    if (word == "include") load_into(stop, path.substr(0, path.rfind('/') + 1) + rest());
    else if (word == "from") stop.from = rest();
    else if (word == "processor") stop.machine = &machine_named(rest());
    else if (word == "lua") stop.version = rest();
    else if (word == "expect") stop.expected.push_back(rest());
    else if (word == "forget-expected") stop.expected.clear();
    else if (word == "register" || word == "saved") {
      std::string name;
      Address value = 0;
      words >> name >> value;
      (word == "register" ? stop.registers : stop.natives.back().registers)
          .set(register_number(*stop.machine, name), value);
    } else if (word == "stack" || word == "memory") {
      Address address = 0;
      std::string hex;
      words >> address >> hex;
      const std::vector<std::byte> bytes = from_hex(hex);
      if (word == "stack" && stop.stack.empty()) stop.stack_start = address;
      if (word == "stack") stop.stack.insert(stop.stack.end(), bytes.begin(), bytes.end());
      stop.memory.put(address, bytes);
    } else if (word == "native") {
      NativeFrame frame;
      std::string flags;
      words >> frame.pc >> frame.sp >> frame.cfa >> frame.function >> flags;
      frame.lookup = stop.natives.empty() ? frame.pc : frame.pc - 1;
      stop.flags[frame.function] = flags;
      stop.names[frame.function] = {Frame::Kind::native, rest(), {}, 0, 0};
      stop.natives.push_back(frame);
    }
  }
}

}  // namespace

SavedStop load_stop(const std::string& path) {
  SavedStop stop;
  load_into(stop, path);
  for (NativeFrame& frame : stop.natives) frame.in_trace = stop.has(frame, 't');
  return stop;
}

namespace {

// If a stop's file has a part of a page, the rest of that page is 0, because snapshots read pages.
class Padded : public Memory {
 public:
  explicit Padded(const SavedMemory& memory) : memory_(memory) {}
  bool read(Address address, std::span<std::byte> into) const override {
    std::ranges::fill(into, std::byte{0});
    auto byte = memory_.bytes().lower_bound(address);
    const bool some = byte != memory_.bytes().end() && byte->first < address + into.size();
    for (; byte != memory_.bytes().end() && byte->first < address + into.size(); ++byte)
      into[byte->first - address] = byte->second;
    return some;
  }

 private:
  const SavedMemory& memory_;
};

// `stopped`: memory that was read during the stop; `objects`: that, and memory that was read after
// it.
Outcome finish(const SavedStop& stop, LuaInspector& reader, const Located& located, const Memory& stopped,
               const Memory& objects) {
  const LookMemory look{stop.registers, {stop.stack_start, stop.stack}, stopped, objects};
  Matched matched = match(reader, stop, look, reader.walk(located, look), stop.natives);
  const Joined joined = join(reader, stop, std::move(matched), {}, stopped);
  Outcome outcome;
  judge(joined, outcome.quality);
  StackTable stacks;
  outcome.stack = stacks.frames_of(StackNamer(stacks).name(reader, stop, joined, stopped));
  keep_shown(Mode::merged, outcome.stack);
  return outcome;
}

WalkLimits limits() {
  WalkLimits limits;
  limits.count_left_out = true;
  return limits;
}

}  // namespace

Outcome replay(const SavedStop& stop) {
  LuaInspector reader(stop.memory, stop.memory, limits(), *stop.machine);
  reader.try_layouts(layouts_for(stop.version));
  Located located;
  reader.locate({stop.memory, stop.registers, {stop.stack_start, stop.stack}}, {}, true, located);
  return finish(stop, reader, located, stop.memory, stop.memory);
}

Outcome replay_through_snapshot(const SavedStop& stop) {
  LuaInspector reader(stop.memory, stop.memory, limits(), *stop.machine);
  reader.try_layouts(layouts_for(stop.version));
  const Locator::ThreadStack stack = {stop.stack_start, stop.stack};
  const Padded padded(stop.memory);
  Snapshot snapshot(padded);
  snapshot.open(stop.stack_start, stop.stack.size(), {}, stop.machine->red_zone);
  Located located;
  reader.locate({snapshot, stop.registers, stack}, {}, true, located);
  snapshot.close();
  return finish(stop, reader, located, snapshot, SnapshotThenLater(snapshot, stop.memory));
}

}  // namespace luaspy::replay
