#include "stack/stack_reader.h"

#include "luastate/luas.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace luaspy {

StackReader::StackReader(const Mapped& mapped, const Memory& memory, MergeOptions merging, WalkLimits limits)
    : merging_(merging),
      map_(mapped, memory),
      objects_(memory),
      lua_(memory, objects_, limits, map_.machine()),
      own_look_(memory) {
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
  AddressSpace space = map_.look();
  const bool new_code = map_.has_new_code(space);
  lock();
  map_.take(std::move(space));
  lua_.know(map_.space());
  unlock();
  if (!new_code || !map_.find_luas()) return;
  lock();
  lua_.try_rows(map_.detector().rows());
  unlock();
  map_.find_functions();
}

void StackReader::try_all_rows() {
  lock();
  lua_.try_rows(all_rows());
  unlock();
}

void StackReader::settle() {
  if (map_.is_due()) refresh();
}

bool StackReader::read(Look& look, const Registers& registers, const Prediction& predicted, bool hurry) {
  look.registers = registers;
  look.objects.open(0, 0, {});  // empty
  look.objects.close();
  const std::size_t whole = policy_.stack_bytes(map_.space(), registers.sp());
  const Address known_size = predicted.stack_end - registers.sp();  // huge if stack_end is below sp
  look.cut = hurry && predicted.stack_end != 0 && known_size < whole;
  Snapshot& snapshot = look.snapshot;
  const std::size_t red_zone = map_.machine().red_zone;
  snapshot.open(registers.sp(), look.cut ? known_size : whole, predicted.memory, red_zone);
  // A guessed stack size may reach beyond the stack. Its first page can be read.
  if (snapshot.stack().empty())
    snapshot.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {}, red_zone);
  if (snapshot.stack().empty()) return false;
  const bool all = !hurry || policy_.takes_care();
  lua_.locate(snapshot, registers, look.stack(), {predicted.stack_start, predicted.stack}, all, look.located,
              &predicted.mentions);
  return true;
}

void StackReader::read_after(Look& look, const Prediction& predicted) const {
  look.snapshot.close();
  look.objects.open(0, 0, predicted.objects);
  if (!look.located.all)
    lua_.touch(SnapshotThenLater(look.snapshot, look.objects), look.registers, look.stack(), look.located);
  look.objects.close();
}

bool StackReader::finish(Look& look, Sample& sample, Prediction& prediction) {
  look_ = &look;
  const bool missed = lua_.missed(look.located);
  policy_.learn(missed);
  if (missed) return false;
  objects_.open(0, 0, {});
  const SnapshotThenLater later(look.objects, objects_), both(look.snapshot, later);
  const LookMemory memory{look.registers, look.stack(), look.snapshot, both};
  Matched room = std::exchange(joined_, {}).from;
  Walked walked = lua_.walk(look.located, memory, std::move(room.lua));
  Matched matched = match_by_unwinding(lua_, native_code(), map_.unwinder(), map_.modules(), memory, std::move(walked),
                                       std::move(room.natives));
  if (look.cut && !matched.complete) {
    prediction.stack_end = 0;  // the unwinder stopped too early
    return false;
  }
  if (!look.located.all && lua_.may_have_freed(matched.lua, look.snapshot)) {
    policy_.learn(true);  // the faster its collector goes round, the more looks read all functions in the stop
    return false;
  }
  if (!lua_.confirm_functions(matched.lua, look.located.all) && !look.located.all) {
    policy_.take_care_once();
    return false;
  }
  map_.note(matched.natives);
  if (!matched.complete) policy_.learn_stack_was_cut(look.snapshot.stack().size());
  predict(matched, prediction);
  joined_ = join(lua_, native_code(), std::move(matched), merging_, look.snapshot);
  sample.quality = {};
  sample.quality.stacks = 1;
  sample.quality.native_complete = joined_.from.complete;
  judge(joined_, sample.quality);
  sample.vm_state = lua_.vm_state(joined_.from.lua, natives(), native_code());
  sample.heaps = LuaReader::heaps(joined_.from.lua, look.snapshot);
  if (names_wait_) sample.stack.clear();
  else sample.stack = luaspy::name(lua_, native_code(), joined_, look.snapshot);
  return true;
}

StackReader::Unnamed StackReader::take_unnamed() {
  Unnamed look{std::exchange(look_->snapshot, Snapshot(modules().memory())), std::exchange(joined_, {})};
  look.snapshot.close();
  return look;
}

void StackReader::predict(const Matched& matched, Prediction& prediction) const {
  constexpr Address above_root = 256;  // bytes of the outermost frame that may be read
  const Snapshot& snapshot = look_->snapshot;
  snapshot.predict(prediction.memory);
  look_->objects.predict(prediction.objects);
  constexpr std::size_t most_kept = 256 << 10;
  const auto kept = snapshot.stack().first(std::min(snapshot.stack().size(), most_kept));
  prediction.stack.assign(kept.begin(), kept.end());
  prediction.stack_start = snapshot.stack_start();
  prediction.mentions = look_->located.mentions;
  prediction.stack_end = matched.complete ? matched.natives.back().sp + above_root : 0;
}

}  // namespace luaspy
