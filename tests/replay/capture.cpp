// capture PID FROM: stops the first thread of a process that runs Lua, prints what luaspy read of it, and the stack it made of
// it, as a file for the replay tests. Look at the stack before you keep it: the test will hold what it says.

#include <fmt/format.h>

#include <iostream>

#include "attach/snapshot.h"
#include "attach/target.h"
#include "native_code.h"
#include "profile.h"
#include "stack_reader.h"
#include "saved_stop.h"

namespace {

using namespace luaspy;

// Keeps a copy of every byte that was read through it.
class Recorder : public Memory {
 public:
  Recorder(const Memory& from, replay::SavedMemory& into) : from_(from), into_(into) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (!from_.read(address, into)) return false;
    into_.put(address, into);
    return true;
  }

 private:
  const Memory& from_;
  replay::SavedMemory& into_;
};

int run(int pid, const char* from) {
  Result<Process> process = Process::open(pid);
  if (!process) return std::cerr << process.error().text << '\n', 1;
  Target target(std::move(*process), std::chrono::seconds(2));
  const AddressSpace space = target.process().address_space();
  Detector detector;
  detector.update(space, target.memory());
  if (detector.images().empty()) return std::cerr << "no Lua\n", 1;
  Modules modules(target.memory(), [&](const Mapping& mapping) { return target.process().open_mapped(mapping).release(); });
  modules.update(space);
  Unwinder unwinder(modules);
  NativeCode native(modules, unwinder);
  native.update(detector.images());

  replay::SavedStop stop;
  stop.from = from;
  stop.version = detector.images().front().version;
  Snapshot snapshot(target.memory());
  const Recorder recorder(snapshot, stop.memory);
  LuaReader reader(recorder, recorder, WalkLimits{.count_left_out = true});
  reader.try_rows(detector.rows());
  Target::Stop held(target, pid);
  if (held.outcome() != Target::Stop::Outcome::stopped) return std::cerr << "it did not stop\n", 1;
  stop.registers = held.registers();
  const Mapping* const stack = space.find(stop.registers.sp());
  if (stack == nullptr) return std::cerr << "no stack\n", 1;
  snapshot.open(stop.registers.sp(), stack->end - stop.registers.sp(), {});
  const Locator::ThreadStack words = {snapshot.stack_start(), snapshot.stack()};
  LuaReader::Found found;
  reader.read(recorder, stop.registers, words, {}, true, found);
  reader.walk(found, recorder, recorder, stop.registers, words);
  for (const Address entry : reader.c_entries()) unwinder.note_entry(entry);
  unwind_natives(stop.registers, recorder, modules, unwinder, native, reader, stop.natives);
  reader.refine(stop.natives, stop.registers, native, recorder);
  for (const NativeFrame& frame : stop.natives) {
    stop.flags[frame.function] = std::string(native.is_machine_code(frame) ? "t" : "") + (native.executes_lua(frame) ? "x" : "") + (native.carries(frame) ? "c" : "") + (native.in_core_module(frame) ? "m" : "");
    stop.names[frame.function] = {Frame::Kind::native, describe(native.describe(frame), false), {}, 0, 0};
  }
  const Merged merged = merge(stop.natives, reader.segments(), stop, {});
  for (const Frame& frame : reader.label(merged, stop.natives, stop, recorder)) stop.expected.push_back(describe(frame, true));
  // What lies above the outermost native frame is the environment and the auxiliary vector.
  stop.stack_start = snapshot.stack_start();
  const Address end = stop.natives.back().sp + 64;
  stop.stack.assign(snapshot.stack().begin(), snapshot.stack().begin() + static_cast<std::ptrdiff_t>(std::min<Address>(end - stop.stack_start, snapshot.stack().size())));
  held.resume();
  replay::save_stop(stop, std::cout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 3 ? run(std::atoi(argv[1]), argv[2]) : (std::cerr << "usage: capture PID FROM\n", 2); }
