#include "stack/stop_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "stack/snapshot.h"
#include "stack/native_code.h"
#include "profile/profile.h"
#include "stack/stack_reader.h"

namespace luaspy {
namespace {

void write_bytes(std::ostream& out, const char* word, Address address, std::span<const std::byte> bytes) {
  constexpr std::size_t a_line = 32;
  for (std::size_t i = 0; i < bytes.size(); i += a_line) {
    out << word << ' ' << fmt::format("{:x} ", address + i);
    for (const std::byte byte : bytes.subspan(i, std::min(a_line, bytes.size() - i))) out << fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    out << '\n';
  }
}

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

// The end of a thread's stack, or what is safe to take for it.
Address stack_end(const AddressSpace& space, Address sp) {
  constexpr Address most = 1 << 20, unknown = 16 << 10;
  const Mapping* const mapping = space.find(sp);
  return mapping == nullptr ? sp + unknown : std::min(mapping->end, sp + most);
}

// In the stop: the stack, and what the walks will need.
bool read_stop(SavedStop& stop, const AddressSpace& space, Snapshot& snapshot, LuaReader& reader, LuaReader::Found& found) {
  const Address sp = stop.registers.sp();
  snapshot.open(sp, stack_end(space, sp) - sp, {});
  if (snapshot.stack().empty()) return false;
  const Locator::ThreadStack words = {snapshot.stack_start(), snapshot.stack()};
  reader.read(CopyingMemory(snapshot, stop.memory), stop.registers, words, {}, true, found);
  return true;
}

}  // namespace

bool SavedMemory::read(Address address, std::span<std::byte> into) const {
  if (into.empty()) return true;
  auto byte = bytes_.find(address);
  for (std::size_t i = 0; i < into.size(); ++i, ++byte) {
    if (byte == bytes_.end() || byte->first != address + i) return false;
    into[i] = byte->second;
  }
  return true;
}

void SavedMemory::put(Address address, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) bytes_[address++] = byte;
}

bool SavedStop::has(const NativeFrame& frame, char flag) const {
  const auto found = flags.find(frame.function);
  return found != flags.end() && found->second.find(flag) != std::string::npos;
}

const Frame& SavedStop::describe(const NativeFrame& frame) const {
  static const Frame unknown = {Frame::Kind::native, "?", {}, 0, 0};
  const auto found = names.find(frame.function);
  return found != names.end() ? found->second : unknown;
}

Frame SavedStop::describe_entry(Address entry) const {
  NativeFrame frame;
  frame.function = entry;
  return describe(frame);
}

void save_stop(const SavedStop& stop, std::ostream& out) {
  out << "luaspy stop 1\nfrom " << stop.from << "\nlua " << stop.version << '\n';
  for (unsigned number = 0; number < register_count; ++number) {
    if (stop.registers.knows(number)) out << fmt::format("register {} {:x}\n", register_names[number], stop.registers[number]);
  }
  write_bytes(out, "stack", stop.stack_start, stop.stack);
  std::vector<std::byte> run;
  Address start = 0;
  const Address stack_end = stop.stack_start + stop.stack.size();
  for (const auto& [address, byte] : stop.memory.bytes()) {
    if (address >= stop.stack_start && address < stack_end) continue;
    if (!run.empty() && address != start + run.size()) write_bytes(out, "memory", start, run), run.clear();
    if (run.empty()) start = address;
    run.push_back(byte);
  }
  write_bytes(out, "memory", start, run);
  for (const NativeFrame& frame : stop.natives) {
    std::string flags = stop.flags.at(frame.function);
    if (flags.empty()) flags = "-";
    out << fmt::format("native {:x} {:x} {:x} {:x} {} {}\n", frame.pc, frame.sp, frame.cfa, frame.function, flags, stop.names.at(frame.function).name);
    for (const unsigned number : callee_saved_registers) {
      if (frame.registers.knows(number)) out << fmt::format("saved {} {:x}\n", register_names[number], frame.registers[number]);
    }
  }
  for (const std::string& line : stop.expected) out << "expect " << line << '\n';
}

Result<SavedStop> capture_stop(Target& target, pid_t tid, const std::string& from) {
  const Error refused = {Cause::no_such_process, fmt::format("No stop of thread {} could be saved: it has ended, or did not stop, or was moving.", tid)};
  const AddressSpace space = target.process().address_space();
  Detector detector;
  detector.update(space, target.memory());
  Modules modules(target.memory(), [&](const Mapping& mapping) { return target.process().open_mapped(mapping).release(); });
  modules.update(space);
  Unwinder unwinder(modules);
  NativeCode native(modules, unwinder);
  native.update(detector.images());

  SavedStop stop;
  stop.from = from;
  stop.version = detector.images().empty() ? "?" : detector.images().front().version;
  Snapshot snapshot(target.memory());
  const SnapshotThenLater both(snapshot, target.memory());
  const CopyingMemory copying(both, stop.memory);
  LuaReader reader(copying, copying, WalkLimits{.count_left_out = true});
  LuaReader::Found found;
  reader.try_rows(detector.rows());
  const Thread thread(target.process().pid(), tid);
  const ThreadState state = thread.state();
  if (state.kind == ThreadState::Kind::sleeping) {   // a stop would end its system call
    stop.registers.set(rip, state.pc);
    stop.registers.set(rsp, state.sp);
    const std::uint64_t run_count = thread.run_count();
    if (!read_stop(stop, space, snapshot, reader, found) || thread.state() != state || thread.run_count() != run_count) return refused;
  } else {
    Target::Stop held(target, tid);
    if (held.outcome() != Target::Stop::Outcome::stopped) return refused;
    stop.registers = held.registers();
    if (!read_stop(stop, space, snapshot, reader, found)) return refused;
  }
  snapshot.close();
  const Locator::ThreadStack words = {snapshot.stack_start(), snapshot.stack()};
  reader.walk(found, copying, copying, stop.registers, words);
  for (const Address entry : reader.c_entries()) unwinder.note_entry(entry);
  unwind_natives(stop.registers, copying, modules, unwinder, native, reader, stop.natives);
  reader.refine(stop.natives, stop.registers, native, copying);
  for (const NativeFrame& frame : stop.natives) {
    stop.flags[frame.function] = std::string(native.is_machine_code(frame) ? "t" : "") + (native.executes_lua(frame) ? "x" : "") + (native.carries(frame) ? "c" : "") + (native.in_core_module(frame) ? "m" : "");
    stop.names[frame.function] = {Frame::Kind::native, describe(native.describe(frame), false), {}, 0, 0};
  }
  const Merged merged = merge(stop.natives, reader.segments(), stop, {});
  for (const Frame& frame : reader.label(merged, stop.natives, stop, copying)) stop.expected.push_back(describe(frame, true));
  // What lies above the outermost native frame is the environment and the auxiliary vector.
  stop.stack_start = snapshot.stack_start();
  const Address end = stop.natives.back().sp + 64;
  stop.stack.assign(snapshot.stack().begin(), snapshot.stack().begin() + static_cast<std::ptrdiff_t>(std::min<Address>(end - stop.stack_start, snapshot.stack().size())));
  return stop;
}

}  // namespace luaspy
