#include "sampling/capture_stop.h"

#include <fmt/format.h>

#include <algorithm>

#include "attach/held_thread.h"
#include "base/mode.h"
#include "stack/one_stack.h"
#include "stack/snapshot.h"
#include "stack/stack_namer.h"
#include "stack/target_map.h"

namespace luaspy {
namespace {

// Keeps a copy of every byte that was read through it.
class CopyingMemory : public Memory {
 public:
  CopyingMemory(const Memory& from, SavedMemory& into) : from_(from), into_(into) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (!from_.read(address, into)) return false;
    into_.put(address, into);
    return true;
  }

 private:
  const Memory& from_;
  SavedMemory& into_;
};

// The end of a thread's stack, or an address that can safely be taken for it.
Address stack_end(const AddressSpace& space, Address sp) {
  constexpr Address most = 1 << 20, unknown = 16 << 10;
  const Mapping* const mapping = space.find(sp);
  return mapping == nullptr ? sp + unknown : std::min(mapping->end, sp + most);
}

// Reads, during the stop, the stack and what the walks will need.
bool read_stop(SavedStop& stop, const AddressSpace& space, Snapshot& snapshot, LuaInspector& reader, Located& located) {
  const Address sp = stop.registers.sp();
  snapshot.open(sp, stack_end(space, sp) - sp, {}, stop.machine->red_zone);
  if (snapshot.stack().empty()) return false;
  const Locator::ThreadStack words = {snapshot.stack_start(), snapshot.stack()};
  reader.locate({CopyingMemory(snapshot, stop.memory), stop.registers, words}, {}, true, located);
  return true;
}

std::string lua_code_flag(NativeFunctions::LuaCode code) {
  switch (code) {
    case NativeFunctions::LuaCode::no:
      return "h";
    case NativeFunctions::LuaCode::maybe:
      break;
    case NativeFunctions::LuaCode::yes:
      return "l";
  }
  return {};
}

}  // namespace

Result<SavedStop> capture_stop(Target& target, pid_t tid, const std::string& from) {
  const Error refused = {Cause::no_such_process,
                         fmt::format("Thread {} could not be saved: it has ended, did not stop, or was moving.", tid)};
  KnownFiles known;
  TargetMap map(target.process(), target.memory(), known);
  map.update(map.look());
  map.find_luas();
  map.find_functions();
  const NativeCode& native = map.functions();

  SavedStop stop;
  stop.machine = &map.machine();
  stop.from = from;
  stop.version = map.detector().images().empty() ? "?" : map.detector().images().front().version;
  Snapshot snapshot(target.memory());
  const SnapshotThenLater both(snapshot, target.memory());
  const CopyingMemory copying(both, stop.memory);
  LuaInspector reader(copying, copying, WalkLimits{.count_left_out = true}, map.machine());
  Located located;
  reader.try_layouts(map.detector().layouts());
  {
    const HeldThread held(target, std::make_shared<Thread>(target.process().pid(), tid));
    stop.registers = held.registers();
    if (!held.stands_still() || !read_stop(stop, map.space(), snapshot, reader, located) || !held.has_not_run())
      return refused;
  }
  snapshot.close();
  const LookMemory look{stop.registers, {snapshot.stack_start(), snapshot.stack()}, copying, copying};
  Matched matched = match_by_unwinding(reader, map, look, reader.walk(located, look));
  stop.natives = matched.natives;
  for (const NativeFrame& frame : stop.natives) {
    stop.flags[frame.function] = std::string(frame.in_trace ? "t" : "") + (native.executes_lua(frame) ? "x" : "") +
                                 (native.carries(frame) ? "c" : "") + (native.in_core_module(frame) ? "m" : "") +
                                 lua_code_flag(native.lua_code(frame));
    stop.names[frame.function] = {Frame::Kind::native, describe(native.describe(frame), false), {}, 0, 0};
  }
  const Joined joined = join(reader, stop, std::move(matched), {}, copying);
  StackTable stacks;
  Stack stack = stacks.frames_of(StackNamer(stacks).name(reader, stop, joined, copying));
  keep_shown(Mode::merged, stack);
  for (const Frame& frame : stack) stop.expected.push_back(describe(frame, true));
  // What lies above the outermost native frame is the environment and the auxiliary vector.
  stop.stack_start = snapshot.stack_start();
  const Address end = stop.natives.back().sp + 64;
  stop.stack.assign(snapshot.stack().begin(),
                    snapshot.stack().begin() + static_cast<std::ptrdiff_t>(
                                                   std::min<Address>(end - stop.stack_start, snapshot.stack().size())));
  return stop;
}

}  // namespace luaspy
