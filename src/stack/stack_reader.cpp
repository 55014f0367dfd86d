#include "stack/stack_reader.h"

#include "luastate/luas.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace luaspy {
namespace {

using Look = StackReader::Look;

// Has the unwinder perhaps stopped because no more of the stack was read?
bool reached_cut(const Look& look, const Matched& matched) {
  constexpr Address largest_frame = 16 << 10;
  if (look.cut == Look::Cut::none) return false;
  return look.cut == Look::Cut::at_end ||
         look.snapshot.stack_start() + look.snapshot.stack().size() - matched.natives.back().sp < largest_frame;
}

// As it was, once find_missed() has judged what the stop did not: the next look need not judge it
// again.
void keep_stack(Look& look, StackReader::Prediction& prediction) {
  const std::span<const std::byte> stack = look.snapshot.stack();
  if (look.stack_to_keep.empty()) prediction.stack.assign(stack.begin(), stack.end());
  else prediction.stack.swap(look.stack_to_keep);
  prediction.stack_start = look.snapshot.stack_start();
  prediction.mentions = look.located.mentions;
}

void predict(const Look& look, const Matched& matched, StackReader::Prediction& prediction) {
  constexpr Address above_root = 256;           // bytes of the outermost frame that may be read
  constexpr std::size_t most_stack_ends = 256;  // a program may make fibers without end
  look.snapshot.predict(prediction.memory);
  look.objects.predict(prediction.objects);
  if (!matched.complete) return;
  std::vector<Address>& ends = prediction.stack_ends;
  const Address end = matched.natives.back().sp + above_root;
  // No other stack ends within this one.
  ends.erase(std::ranges::upper_bound(ends, look.registers.sp()), std::ranges::upper_bound(ends, end));
  if (ends.size() >= most_stack_ends) ends.clear();
  ends.insert(std::ranges::upper_bound(ends, end), end);
}

}  // namespace

StackReader::StackReader(const Mapped& mapped, const Memory& memory, StackTable& stacks, MergeOptions merging,
                         WalkLimits limits, std::shared_ptr<KnownFiles> known)
    : merging_(merging),
      known_files_(known != nullptr ? std::move(known) : std::make_shared<KnownFiles>()),
      map_(mapped, memory, *known_files_),
      objects_(memory),
      lua_(memory, objects_, limits, map_.machine()),
      namer_(stacks),
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
  const bool new_code = map_.has_new_code(space) || map_.is_incomplete();
  lock();
  map_.update(std::move(space));
  lua_.set_space(map_.space());
  unlock();
  if (!new_code || !map_.find_luas()) return;
  lock();
  lua_.try_layouts(map_.detector().layouts());
  policy_.begin_again();
  if (label_values_) label_values_->forget();
  if (requests_) requests_->forget();
  if (fibers_) fibers_->forget();
  unlock();
  map_.find_functions();
}

void StackReader::try_all_layouts() {
  lock();
  lua_.try_layouts(all_layouts());
  unlock();
}

void StackReader::read_symbols_again() {
  known_files_->symbols = {};
  known_files_->vm_images.clear();
  map_.forget_symbols();
  map_.find_functions();
}

void StackReader::label(const LabelChoice& choice, LabelTable& table) {
  labels_ = &table;
  if (choice.coroutines) namer_.label_coroutines(table);
  if (choice.plugins) namer_.label_plugins();
  const auto function_at = [this](const char* name) { return map_.modules().exported_function(name); };
  if (choice.requests || choice.traces || choice.phases)
    requests_.emplace(
        choice, [this](const char* name, Address argument) { return loads_of(name, argument); }, function_at);
  shows_requests_ = choice.requests;
  if (choice.fibers) fibers_.emplace([function_at](const char* name) { return function_at(name) != 0; });
  if (!choice.expressions.empty()) label_values_.emplace(choice.expressions);
}

std::vector<Load> StackReader::loads_of(const char* function, Address argument) const {
  constexpr std::size_t most = 256;
  std::array<std::byte, most> code;
  const Memory& live = map_.modules().memory();
  const Address address = map_.modules().exported_function(function);
  if (address == 0 || !live.read(address, code)) return {};
  return map_.machine().code.loads(code, address, argument, live);
}

// The frames with which it began are mostly right there. Behind them may be what is none of its stack.
std::string StackReader::fiber_of(const Memory& live, Address anchor) {
  std::string name = fiber_of(live, anchor, 1024);
  return name == unknown_value ? fiber_of(live, anchor, 8192) : name;
}

std::string StackReader::fiber_of(const Memory& live, Address anchor, std::size_t window) {
  constexpr std::size_t most = 8192;
  const Mapping* const mapping = map_.space().find(anchor);
  if (!fibers_ || mapping == nullptr) return {};
  std::array<std::byte, most> bytes;
  const std::span<std::byte> stack = std::span(bytes).first(
      std::min<std::size_t>({mapping->end - anchor, window, most}));
  if (!live.read(anchor, stack)) return {};
  const TarantoolFibers::Stop as_stopped{anchor, stack, live, true};
  std::string name = fibers_->value(as_stopped, live);
  if (!fibers_->has_learned()) return name;
  lock();
  fibers_->learn();
  unlock();
  return fibers_->value(as_stopped, live);
}

void StackReader::add_labels(const Look& look, const Joined& joined, Sample& sample) {
  sample.labels = namer_.coroutine();
  const std::string_view plugin = namer_.plugin();
  if (!label_values_ && !requests_ && !fibers_ && plugin.empty()) return;
  const Memory& live = lua_.names().memory();
  Labels all = (*labels_)[sample.labels];
  if (!plugin.empty()) all.push_back({std::string(plugin_label), std::string(plugin)});
  if (requests_) {
    HostRequest request = requests_->value(joined, lua_.names(), look.snapshot, live);
    if (shows_requests_ && !request.text.empty()) all.push_back({std::string(request_label), std::move(request.text)});
    if (!request.trace.empty()) all.push_back({std::string(trace_label), std::move(request.trace)});
    if (!request.phase.empty()) all.push_back({std::string(phase_label), std::move(request.phase)});
    sample.request = request.identity;
  }
  if (fibers_) {
    std::string fiber = fibers_->value(
        {look.registers.sp(), look.snapshot.stack(), look.snapshot, !joined.from.lua.on_thread().empty()}, live);
    if (!fiber.empty()) all.push_back({std::string(fiber_label), std::move(fiber)});
  }
  if (label_values_) {
    const Labels& values = label_values_->values(lua_, joined, look.snapshot, live);
    all.insert(all.end(), values.begin(), values.end());
  }
  const bool have_learned = (requests_ && requests_->has_learned()) || (fibers_ && fibers_->has_learned()) ||
                            (label_values_ && label_values_->has_learned());
  if (have_learned) {
    lock();
    if (requests_) requests_->learn();
    if (fibers_) fibers_->learn();
    if (label_values_) label_values_->learn();
    unlock();
  }
  sample.labels = labels_->intern(all);
}

void StackReader::refresh_if_stale() {
  if (map_.is_due()) refresh();
}

bool StackReader::read(Look& look, const Registers& registers, const Prediction& predicted, bool hurry) {
  look.registers = registers;
  look.stack_to_keep.clear();
  look.objects.open(0, 0, {});  // empty
  look.objects.close();
  const auto [whole, guessed] = policy_.stack_bytes(map_.space(), registers.sp(), hurry);
  const auto end = std::ranges::upper_bound(predicted.stack_ends, registers.sp());
  const std::size_t known_size = hurry && end != predicted.stack_ends.end() ? *end - registers.sp() : whole;
  look.cut = known_size < whole ? Look::Cut::at_end : guessed ? Look::Cut::guessed : Look::Cut::none;
  Snapshot& snapshot = look.snapshot;
  const std::size_t red_zone = map_.machine().red_zone;
  const std::size_t wanted = std::min(known_size, whole);
  snapshot.open(registers.sp(), wanted, predicted.memory, red_zone);
  if (snapshot.stack().size() < wanted) look.cut = Look::Cut::none;
  // A guessed stack size may reach beyond the stack. Its first page can be read.
  if (snapshot.stack().empty())
    snapshot.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {}, red_zone);
  if (snapshot.stack().empty()) return false;
  const bool all = !hurry || policy_.takes_care();
  const Locator::StoppedThread thread{snapshot, registers, look.stack()};
  lua_.locate(thread, {{predicted.stack_start, predicted.stack}, &predicted.mentions}, all, look.located,
              hurry ? Locator::Effort::bounded : Locator::Effort::complete);
  if (label_values_) label_values_->touch(lua_, thread, look.located);
  if (requests_) requests_->touch(snapshot, look.located);
  if (fibers_) fibers_->touch(snapshot, registers.sp());
  return true;
}

void StackReader::read_after(Look& look, const Prediction& predicted) const {
  look.snapshot.close();
  look.objects.open(0, 0, predicted.objects);
  if (!look.located.all_functions)
    lua_.prefetch({SnapshotThenLater(look.snapshot, look.objects), look.registers, look.stack()}, look.located);
  look.objects.close();
  look.stack_to_keep.assign(look.snapshot.stack().begin(), look.snapshot.stack().end());
}

StackReader::Finished* StackReader::look(const Registers& registers) {
  constexpr int most_looks = 16;  // a look learns from those before what has to be read
  Prediction prediction;
  for (int i = 0; i < most_looks && read(own_look_, registers, {}, false); ++i) {
    if (Finished* const finished = finish(own_look_, prediction)) return finished;
  }
  return nullptr;
}

StackReader::Finished* StackReader::finish(Look& look, Prediction& prediction) {
  const bool missed = lua_.missed(look.stack(), look.located);
  policy_.record(missed);
  keep_stack(look, prediction);
  if (missed) return nullptr;
  objects_.open(0, 0, {});
  const SnapshotThenLater later(look.objects, objects_), both(look.snapshot, later);
  const LookMemory memory{look.registers, look.stack(), look.snapshot, both};
  lua_.use_copies(look.located);
  Joined room = std::exchange(finished_.joined, {});
  Walked walked = lua_.walk(look.located, memory, std::move(room.from.lua));
  Matched matched = match_by_unwinding(lua_, map_, memory, std::move(walked), std::move(room.from.natives));
  if (!matched.complete && reached_cut(look, matched)) {
    if (look.cut == Look::Cut::guessed) policy_.record_cut_stack(look.snapshot.stack().size());
    const auto wrong = std::ranges::upper_bound(prediction.stack_ends, look.registers.sp());
    if (look.cut == Look::Cut::at_end && wrong != prediction.stack_ends.end()) prediction.stack_ends.erase(wrong);
    return nullptr;
  }
  // The state may be among what the stop had no time for, and no longer run.
  if (matched.lua.unclaimed && !look.located.left_out.none()) {
    policy_.record(true);
    return nullptr;
  }
  if (!look.located.all_functions && lua_.may_have_freed(matched.lua, look.snapshot)) {
    policy_.record(true);  // the faster its collector goes round, the more looks read all functions in the stop
    return nullptr;
  }
  const bool all = look.located.all_functions;
  if (!lua_.confirm_functions(matched.lua, all) && !all) {
    policy_.record(true);  // a program that makes new functions, or new threads, all the time
    return nullptr;
  }
  map_.observe(matched.natives);
  predict(look, matched, prediction);
  const Joined& joined = finished_.joined = join(lua_, native_code(), std::move(matched), merging_, look.snapshot,
                                                 std::move(room));
  finished_.look = &look;
  Sample& sample = finished_.sample = {};
  sample.quality.stacks = 1;
  sample.quality.native_complete = joined.from.complete;
  judge(joined, sample.quality);
  sample.vm_state = lua_.vm_state(joined.from.lua, joined.from.natives, native_code());
  sample.heaps = LuaInspector::heaps(joined.from.lua, look.snapshot);
  sample.stack = names_wait_ ? empty_stack : namer_.name(lua_, native_code(), joined, look.snapshot);
  if (!names_wait_) add_labels(look, joined, sample);
  const Names::WithoutPlace without_place = lua_.names().drain_without_place();
  sample.quality.function_gone = without_place.gone != 0;
  sample.quality.no_debug_info = without_place.no_debug_info != 0;
  return &finished_;
}

StackReader::Unnamed StackReader::move_unnamed(Finished& look) const {
  Unnamed unnamed{std::exchange(look.look->snapshot, Snapshot(modules().memory())), std::exchange(look.joined, {})};
  unnamed.snapshot.close();
  return unnamed;
}

}  // namespace luaspy
