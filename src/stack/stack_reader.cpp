#include "stack/stack_reader.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "stack/vm_frames.h"

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
  native.forget_machine_code();
  natives.clear();
  // Exit stubs and links between traces belong to none.
  const auto is_trace = [&](const NativeFrame& frame) {
    const Trace* const trace = lua.trace_at(frame.lookup);
    if (trace == nullptr && !(frame.step == Step::registers && lua.on_trace())) return false;
    native.add_machine_code(trace != nullptr ? Unwinder::Range{trace->mcode, trace->mcode + trace->size} : Unwinder::Range{frame.lookup, frame.lookup + 1});
    return true;
  };
  const VmFrames rule(modules, native, lua.cframes(), lua.on_trace(), is_trace);
  return unwinder.unwind(registers, stack, &rule, natives, native_limit);
}

StackReader::StackReader(const Mapped& mapped, const Memory& memory, MergeOptions merging, WalkLimits limits)
    : mapped_(mapped),
      merging_(merging),
      modules_(memory, [&mapped](const Mapping& mapping) { return mapped.open_mapped(mapping).release(); }),
      unwinder_(modules_),
      native_(modules_, unwinder_),
      lua_(memory, objects_, limits),
      own_look_(memory),
      objects_(memory) {
  refresh();
}

bool StackReader::lock_soon() {
  constexpr std::chrono::microseconds patience(100);
  if (!locked_.test_and_set(std::memory_order_acquire)) return true;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (locked_.test_and_set(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

void StackReader::lock() {
  while (locked_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
}

void StackReader::refresh() {
  AddressSpace space = mapped_.address_space();
  const bool new_code = code_starts(space) != code_starts(space_);
  lock();
  space_ = std::move(space);
  lua_.know(space_);
  unlock();
  stale_ = false;
  if (!new_code) return;
  refreshes_in_vain_ = 0;
  modules_.update(space_);
  unwinder_.forget();
  if (!detector_.update(space_, modules_.memory())) return;
  lock();
  lua_.try_rows(detector_.rows());
  unlock();
  native_.update(detector_.images());
}

void StackReader::try_all_rows() {
  lock();
  lua_.try_rows(all_rows());
  unlock();
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

bool StackReader::read(Look& look, const Registers& registers, const Prediction& predicted, bool hurry) {
  look.registers = registers;
  look.objects.open(0, 0, {});   // empty
  look.objects.close();
  const std::size_t whole = stack_size(registers.sp());
  const Address known_size = predicted.stack_end - registers.sp();   // huge if it lies below
  look.cut = hurry && predicted.stack_end != 0 && known_size < whole;
  Snapshot& snapshot = look.snapshot;
  snapshot.open(registers.sp(), look.cut ? known_size : whole, predicted.memory);
  // A guess at a stack's size may reach beyond it: its first page is there.
  if (snapshot.stack().empty()) snapshot.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {});
  if (snapshot.stack().empty()) return false;
  const bool careful = !hurry || careful_looks_ > 0;
  if (hurry && careful) --careful_looks_;
  lua_.read(snapshot, registers, {snapshot.stack_start(), snapshot.stack()}, {predicted.stack_start, predicted.stack}, careful, look.found, &predicted.mentions);
  return true;
}

void StackReader::read_after(Look& look, const Prediction& predicted) const {
  look.snapshot.close();
  look.objects.open(0, 0, predicted.objects);
  if (!look.found.all) lua_.touch(SnapshotThenLater(look.snapshot, look.objects), look.registers, {look.snapshot.stack_start(), look.snapshot.stack()}, look.found);
  look.objects.close();
}

// Did other states run than the stop has found? A target that makes its coroutines at ever new addresses is looked at with care the more often that is
// so: looking again would see less of those that live for microseconds.
bool StackReader::missed(const Look& look) {
  if (!lua_.missed(look.found)) {
    if (++hurried_looks_ % 1024 == 0) next_careful_looks_ = std::max(next_careful_looks_ / 4, fewest_careful_looks);
    return false;
  }
  careful_looks_ = next_careful_looks_;
  next_careful_looks_ = std::min(4 * next_careful_looks_, most_careful_looks);
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
  return std::min<std::size_t>(mapping->end - sp, bounded ? most_stack_bytes : fiber_stack_bytes_.load());
}

void StackReader::unwind(const Registers& registers, Quality& quality) {
  const Snapshot& snapshot = look_->snapshot;
  quality.native_complete = unwind_natives(registers, snapshot, modules_, unwinder_, native_, lua_, natives_) == Unwinder::End::root;
  const SnapshotThenLater later(look_->objects, objects_);
  lua_.refine(natives_, registers, native_, SnapshotThenLater(snapshot, later));
}

bool StackReader::finish(Look& look, Sample& sample, Prediction& prediction) {
  look_ = &look;
  if (missed(look)) return false;
  const Snapshot& snapshot = look.snapshot;
  objects_.open(0, 0, {});
  const SnapshotThenLater later(look.objects, objects_);
  lua_.walk(look.found, snapshot, SnapshotThenLater(snapshot, later), look.registers, {snapshot.stack_start(), snapshot.stack()});
  sample.quality = {};
  sample.quality.stacks = 1;
  note_entries();
  unwind(look.registers, sample.quality);
  // LuaJIT's C functions are known only now; where code has no tables they tell where functions start.
  const auto is_guess = [](const NativeFrame& frame) { return frame.step == Step::code || frame.step == Step::scan; };
  if (note_entries()) {
    if (std::ranges::any_of(natives_, is_guess)) unwind(look.registers, sample.quality);
    else for (NativeFrame& frame : natives_) frame.function = unwinder_.function(frame.lookup).start;
  }
  if (look.cut && sample.quality.native_complete == 0) {
    prediction.stack_end = 0;   // a walk had come to an end too early
    return false;
  }
  if (!lua_.settle_functions(look.found.all) && !look.found.all) {
    careful_looks_ = std::max(careful_looks_.load(), 1);
    return false;
  }
  predict(sample.quality.native_complete != 0, prediction);
  for (const NativeFrame& frame : natives_) stale_ |= !modules_.executes(frame.lookup);
  merged_ = merge(natives_, lua_.segments(), native_, merging_);
  lua_.judge(merged_, sample.quality);
  sample.vm_state = lua_.vm_state(natives_, native_);
  lua_.find_calls(merged_, natives_, native_, snapshot);
  if (names_wait_) sample.stack.clear();
  else sample.stack = lua_.name_calls(merged_, natives_, native_, snapshot);
  return true;
}

StackReader::Unnamed StackReader::take_unnamed() {
  Unnamed look{std::exchange(look_->snapshot, Snapshot(modules_.memory())), std::exchange(natives_, {}), std::exchange(merged_, {}),
               std::exchange(native_.machine_code(), {}), {}};
  look.snapshot.close();
  lua_.swap(look.lua);
  return look;
}

Stack StackReader::name(Unnamed look) {
  lua_.swap(look.lua);
  native_.machine_code().swap(look.machine_code);
  Stack stack = lua_.name_calls(look.merged, look.natives, native_, look.snapshot);
  native_.machine_code().swap(look.machine_code);
  lua_.swap(look.lua);
  return stack;
}

bool StackReader::note_entries() {
  bool news = false;
  for (const Address entry : lua_.c_entries()) news |= unwinder_.note_entry(entry);
  return news;
}

void StackReader::predict(bool complete, Prediction& prediction) {
  constexpr Address above_root = 256;   // bytes that the outermost frame may be asked for
  const Snapshot& snapshot = look_->snapshot;
  snapshot.predict(prediction.memory);
  look_->objects.predict(prediction.objects);
  constexpr std::size_t most_kept = 256 << 10;
  const auto kept = snapshot.stack().first(std::min(snapshot.stack().size(), most_kept));
  prediction.stack.assign(kept.begin(), kept.end());
  prediction.stack_start = snapshot.stack_start();
  prediction.mentions = look_->found.mentions;
  prediction.stack_end = complete ? natives_.back().sp + above_root : 0;
  // What a fiber's stack needs is learned: too little cuts it, too much takes time in the stop.
  const std::size_t fiber_bytes = fiber_stack_bytes_;
  if (!complete && snapshot.stack().size() == fiber_bytes) fiber_stack_bytes_ = std::min(2 * fiber_bytes, most_stack_bytes);
}

}  // namespace luaspy
