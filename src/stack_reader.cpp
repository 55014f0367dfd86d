#include "stack_reader.h"

#include <algorithm>

#include "vm_frames.h"

namespace luaspy {
namespace {

constexpr std::size_t most_stack_bytes = 1 << 20;    // read of a native stack; what is deeper is cut
constexpr Address most_thread_stack = 64 << 20;      // a mapping beyond this is no thread's stack, but may have those of fibers in it
constexpr std::size_t blind_stack_bytes = 16 << 10;  // for a stack that no known mapping holds
constexpr std::size_t native_limit = 8192;

std::vector<Address> code_starts(const AddressSpace& space) {
  std::vector<Address> starts;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.executable) starts.push_back(mapping.start);
  }
  return starts;
}

}  // namespace

Unwinder::End unwind_natives(const Registers& registers, const Memory& stack, const Modules& modules, Unwinder& unwinder, NativeCode& native, LuaReader& lua,
                             std::vector<NativeFrame>& natives) {
  const VmFrames rule(modules, native, lua.cframes(), lua.on_trace());
  std::vector<Unwinder::Range> machine_code;
  native.set_machine_code({});
  for (;;) {
    natives.clear();
    const Unwinder::End end = unwinder.unwind(registers, stack, &rule, natives, native_limit);
    const std::size_t known = machine_code.size();
    for (const NativeFrame& frame : natives) {
      if (modules.find(frame.lookup) != nullptr || native.is_machine_code(frame)) continue;
      if (const Trace* const trace = lua.trace_at(frame.lookup)) machine_code.push_back({trace->mcode, trace->mcode + trace->size});
      // Exit stubs and links between traces belong to none.
      else if (&frame == &natives.front() && lua.on_trace()) machine_code.push_back({frame.lookup, frame.lookup + 1});
    }
    if (machine_code.size() == known) return end;
    native.set_machine_code(machine_code);
  }
}

StackReader::StackReader(Process& process, const Memory& memory, MergeOptions merging, WalkLimits limits)
    : process_(process),
      merging_(merging),
      modules_(memory, [&process](const Mapping& mapping) { return process.open_mapped(mapping).release(); }),
      unwinder_(modules_),
      native_(modules_, unwinder_),
      lua_(memory, limits),
      snapshot_(memory) {
  refresh();
}

void StackReader::refresh() {
  AddressSpace space = process_.address_space();
  const bool new_code = code_starts(space) != code_starts(space_);
  space_ = std::move(space);
  lua_.know(space_);
  stale_ = false;
  if (!new_code) return;
  refreshes_in_vain_ = 0;
  modules_.update(space_);
  unwinder_.forget();
  if (!detector_.update(space_, modules_.memory())) return;
  lua_.try_rows(detector_.rows());
  native_.update(detector_.images());
}

// A target that maps and unmaps all the time must not make luaspy read its mappings at every tick: the more often nothing
// new was found, the longer the pause.
void StackReader::settle() {
  if (settles_to_skip_ > 0) --settles_to_skip_;
  if (!stale_ || settles_to_skip_ > 0) return;
  ++refreshes_in_vain_;
  refresh();
  settles_to_skip_ = (1 << std::min(refreshes_in_vain_, 6)) - 1;
}

bool StackReader::read(const Registers& registers, const Pages& predicted) {
  snapshot_.open(registers.sp(), stack_size(registers.sp()), predicted);
  // A guess at a stack's size may reach beyond it: its first page is there.
  if (snapshot_.stack().empty()) snapshot_.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {});
  if (snapshot_.stack().empty()) return false;
  lua_.read(snapshot_, registers, {snapshot_.stack_start(), snapshot_.stack()});
  return true;
}

std::size_t StackReader::stack_size(Address sp) const {
  const Mapping* mapping = space_.find(sp);
  if (mapping == nullptr) {
    // The main thread's stack grows downwards; the mappings were read when it was smaller.
    const auto above = std::ranges::upper_bound(space_.mappings(), sp, {}, &Mapping::start);
    if (above != space_.mappings().end() && above->path == "[stack]") mapping = &*above;
  }
  if (mapping == nullptr || !mapping->readable) return blind_stack_bytes;
  const bool bounded = mapping->path == "[stack]" || mapping->end - mapping->start <= most_thread_stack;
  return std::min<std::size_t>(mapping->end - sp, bounded ? most_stack_bytes : fiber_stack_bytes_);
}

void StackReader::finish(const Registers& registers, Sample& sample) {
  for (const Address entry : lua_.c_entries()) unwinder_.note_entry(entry);
  sample.quality.stacks = 1;
  // What a fiber's stack needs is learned: too little cuts it, too much takes time in the stop.
  sample.quality.native_complete = unwind_natives(registers, snapshot_, modules_, unwinder_, native_, lua_, natives_) == Unwinder::End::root;
  if (sample.quality.native_complete == 0 && snapshot_.stack().size() == fiber_stack_bytes_)
    fiber_stack_bytes_ = std::min(2 * fiber_stack_bytes_, most_stack_bytes);
  lua_.refine(natives_, registers, native_, snapshot_);
  for (const NativeFrame& frame : natives_) stale_ |= !modules_.executes(frame.lookup);
  const Merged merged = merge(natives_, lua_.segments(), native_, merging_);
  lua_.judge(merged, sample.quality);
  sample.vm_state = lua_.vm_state(natives_, native_);
  sample.stack = lua_.label(merged, natives_, native_, snapshot_);
}

}  // namespace luaspy
