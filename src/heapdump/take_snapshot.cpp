#include "heapdump/take_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "attach/read_resident_memory.h"
#include "attach/resident_pages.h"
#include "attach/standstill.h"
#include "heap/heap_contents.h"
#include "heap/heap_copy.h"
#include "heap/memory_image.h"
#include "heapdump/heap_room.h"
#include "heapdump/heap_words.h"
#include "sampling/session.h"
#include "system/calls.h"

namespace luaspy {
namespace {

using Ranges = std::vector<AddressRange>;

// Before the next try. On a busy machine the process may not have run since the last one, and would be
// seen at the same bad instant.
void let_it_run(int tries_made) {
  if (tries_made == 0) return;
  constexpr auto shortest = std::chrono::milliseconds(5);
  (void)system::sleep_until(system::Clock::now() + shortest * (1 << tries_made));
}

AddressSpace space_of(const Ranges& ranges) {
  std::vector<Mapping> mappings;
  for (const AddressRange& range : ranges) {
    Mapping& mapping = mappings.emplace_back();
    mapping.start = range.start, mapping.end = range.end;
    mapping.readable = mapping.writable = true;
  }
  return AddressSpace(std::move(mappings));
}

// What `now` has and the image does not.
Ranges missing(const Ranges& now, const MemoryImage& image) {
  Ranges rest;
  auto part = image.parts().begin();
  for (const AddressRange& range : now) {
    Address at = range.start;
    while (part != image.parts().end() && part->end() <= at) ++part;
    for (auto in = part; at < range.end; ++in) {
      const bool is_past = in == image.parts().end() || in->start >= range.end;
      const Address next = is_past ? range.end : in->start;
      if (next > at) rest.push_back({at, next});
      if (is_past) break;
      at = in->end();
    }
  }
  return rest;
}

// Is there room for a copy of these ranges, and for the analysis of the Luas that are in them?
Result<void> check_copy(const Ranges& ranges, const Memory& memory, const HeapSnapshot& snapshot) {
  const std::uint64_t bytes = total_bytes(ranges);
  return check_room(bytes, std::min(bytes, heap_bytes(memory, snapshot.states)));
}

// What a profile shows for a native function.
std::string symbol(const StackReader& reader, Address entry) {
  const Frame& frame = reader.native_code().describe_entry(entry);
  if (frame.name.starts_with('[')) return "";  // not known
  return frame.name.starts_with(frame.file) ? frame.name : fmt::format("{} ({})", frame.name, frame.file);
}

void copy_states(StackReader& reader, const Ranges& ranges, HeapSnapshot& snapshot) {
  // A state that is just being changed may not look like one.
  int looks = 3;
  do {
    reader.find_states(space_of(ranges));
  } while (reader.lua().global_states().empty() && --looks > 0);
  for (const auto& [G, lua] : reader.lua().global_states()) snapshot.states.push_back({G, lua});
  std::ranges::sort(snapshot.states, {}, &HeapSnapshot::State::G);
}

void end(Standstill& standstill, HeapSnapshot& snapshot) {
  snapshot.of_one_instant = standstill.undisturbed();
  snapshot.stood_still_ns = standstill.resume().count();
  snapshot.taken_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
}

// Following the references of a heap takes some ten times as long as copying it. `all`: bytes.
bool is_mostly_other(const HeapSnapshot& snapshot, const Memory& memory, std::uint64_t all) {
  constexpr std::uint64_t slower = 10, little = 64 << 20;
  return all > little + slower * heap_bytes(memory, snapshot.states);
}

// A look at one live process.
class LiveLook {
 public:
  LiveLook(Session& session, const SnapshotOptions& options)
      : session_(session),
        process_(session.target().process()),
        live_(session.target().memory()),
        options_(options),
        pages_(process_.pid(), process_.address_space()) {}

  Result<HeapSnapshot> take();

 private:
  enum class Part { all, with_lua };
  ResidentPages::Found find(Part part, const PageWork& work = {}) const;
  Ranges plan(Part part, const PageWork& work = {}) const { return find(part, work).ranges; }
  bool has_state(const Mapping& mapping) const;
  Result<void> find_states();
  Result<bool> copy_pages_of_lua();
  Result<bool> copy_all(bool was_stopped);
  Result<bool> copy_still(MemoryImage& image);
  Error too_long(std::uint64_t done, std::uint64_t all) const;

  static constexpr int tries = 5;
  Session& session_;
  Process& process_;
  const Memory& live_;
  SnapshotOptions options_;
  ResidentPages pages_;
  HeapSnapshot snapshot_;
  bool with_shared_ = false;  // an allocator may take only some blocks from shared memory
};

bool LiveLook::has_state(const Mapping& mapping) const {
  return std::ranges::any_of(snapshot_.states, [&](const auto& state) { return mapping.contains(state.G); });
}

// Other programs' shared memory may be much more than what the process has itself.
ResidentPages::Found LiveLook::find(Part part, const PageWork& work) const {
  return pages_.find(
      process_.address_space(),
      [&](const Mapping& mapping) {
        return mapping.may_hold_objects() &&
               (!mapping.shared || part == Part::all || with_shared_ || has_state(mapping));
      },
      work);
}

Error LiveLook::too_long(std::uint64_t done, std::uint64_t all) const {
  constexpr std::uint64_t mb = 1'000'000;
  const double limit = static_cast<double>(options_.max_still.count()) / 1e6;
  std::string text = fmt::format(
      "Process {} stood still for {:.0f} ms, which is the limit, and {} MB of {} MB were read. It runs again, and "
      "nothing was kept.",
      process_.pid(), limit, done / mb, all / mb);
  if (*options_.option != 0) {
    constexpr double reserve = 1.5, most_times = 100;
    const double times = std::min(static_cast<double>(all) / static_cast<double>(std::max(done, all / 100 + 1)),
                                  most_times);
    text += fmt::format(" To let it stand still for longer: {} {:.0f}.", options_.option,
                        std::ceil(limit * times * reserve / 100) * 100);
  }
  return {Cause::internal, text};
}

// Copies only the pages that have Lua objects. They are found by reading all objects while the
// process runs. In the standstill they are copied again, and all objects are read once more: from
// the copy, and where the process has made new ones, from the process. False: not all were found.
Result<bool> LiveLook::copy_pages_of_lua() {
  constexpr int tries_of_pages = 3, readings = 4;
  constexpr std::size_t page = HeapCopy::page_size, least = 64 << 20;
  for (int i = 0; i < tries_of_pages; ++i) {
    let_it_run(i);
    snapshot_.memory.reset();
    const std::uint64_t used = heap_bytes(live_, snapshot_.states), most = 4 * used + least;
    if (!check_room(most, used)) return false;  // nor is there for all of it: that is said then
    HeapCopy copy(live_, most);
    copy.set_space(space_of(plan(Part::all)));
    const auto use_all = [&] {
      return std::ranges::all_of(snapshot_.states,
                                 [&](const HeapSnapshot::State& state) { return use_heap(copy, *state.lua, state.G); });
    };
    for (int reading = 0; reading < readings && !use_all(); ++reading) copy.start(false);
    copy.end_at(system::Clock::now() + options_.max_still);
    Standstill standstill(session_.target());
    copy.copy((used / 4 + least) / page);
    bool is_whole = use_all();
    end(standstill, snapshot_);
    if (copy.is_late()) return too_long(copy.copied_bytes(), copy.used_bytes());
    copy.seal();
    is_whole &= !copy.has_filled_all();
    auto image = std::make_shared<MemoryImage>();
    // Not constants of the program, which references may lead to.
    if (!is_whole || !image->add(common_parts(copy.ranges(), plan(Part::all)))) continue;
    image->copy(copy, 1);
    snapshot_.bytes = image->bytes();
    snapshot_.memory = std::move(image);
    if (snapshot_.of_one_instant && adds_up(snapshot_)) return true;
  }
  return false;
}

// `image`: has what was planned. False: what the process has made since is so much that preparing memory
// for it would take long.
Result<bool> LiveLook::copy_still(MemoryImage& image) {
  const system::Clock::time_point end_at = system::Clock::now() + options_.max_still;
  Standstill standstill(session_.target());
  if (options_.with_resident) {
    Result<ResidentMemory> resident = read_resident_memory(process_.pid(), end_at);
    if (!resident) return resident.error();
    snapshot_.resident = std::move(*resident);
  }
  constexpr std::uint64_t few_words = 1 << 22, least = 64 << 20;
  const Ranges fresh = missing(plan(Part::with_lua, {few_words, end_at}), image);
  const bool is_too_much = total_bytes(fresh) > image.bytes() / 4 + least;
  const Result<void> added = is_too_much ? Result<void>() : image.add(fresh);
  const std::size_t done = added && !is_too_much ? image.copy(live_, end_at) : 0;
  snapshot_.stack_pointers.clear();
  for (const HeldThread& member : standstill.members()) {
    if (member.sleeps()) snapshot_.stack_pointers.push_back(member.state().sp);
  }
  end(standstill, snapshot_);
  if (!added) return added.error();
  if (is_too_much) return false;
  if (done < image.bytes()) return too_long(done, image.bytes());
  return true;
}

Result<bool> LiveLook::copy_all(bool was_stopped) {
  snapshot_.memory.reset();
  auto image = std::make_shared<MemoryImage>();
  const Ranges planned = plan(Part::with_lua);
  Result<void> prepared = check_copy(planned, live_, snapshot_);
  if (prepared) prepared = image->add(planned);
  if (!prepared)
    return Error{prepared.error().cause, prepared.error().text + (was_stopped ? "" : " The process was not stopped.")};
  Result<bool> copied = copy_still(*image);
  if (!copied || !*copied) return copied;
  snapshot_.bytes = image->bytes();
  snapshot_.memory = std::move(image);
  return snapshot_.of_one_instant && adds_up(snapshot_);
}

// The process runs meanwhile. A look at a state that is just being changed may not believe it.
Result<void> LiveLook::find_states() {
  StackReader& reader = session_.sampler().reader();
  for (int i = 0; i < tries && snapshot_.states.empty() && process_.alive(); ++i) {
    let_it_run(i);
    const ResidentPages::Found found = find(Part::all);
    snapshot_.unknown_bytes = found.unknown_bytes;
    copy_states(reader, found.ranges, snapshot_);
  }
  if (!snapshot_.states.empty()) return {};
  const std::string unknown = unknown_memory_text(snapshot_.unknown_bytes);
  return Error{Cause::not_initialised, fmt::format("There is no lua_State in the memory of process {}.{}{}",
                                                   process_.pid(), unknown.empty() ? "" : " ", unknown)};
}

Result<HeapSnapshot> LiveLook::take() {
  const Error ended{Cause::target_ended,
                    fmt::format("Process {} ended while luaspy looked at its memory.", process_.pid())};
  StackReader& reader = session_.sampler().reader();
  snapshot_.pid = process_.pid();
  snapshot_.of_process = true;
  snapshot_.command = process_.command();
  snapshot_.code->use([&reader](Address entry) { return symbol(reader, entry); });
  Result<void> found = find_states();
  if (!process_.alive()) return ended;
  if (!found) return found.error();
  Result<bool> taken = false;
  const bool only_pages_of_lua = !options_.with_resident &&
                                 is_mostly_other(snapshot_, live_, total_bytes(plan(Part::with_lua)));
  if (only_pages_of_lua) taken = copy_pages_of_lua();
  for (int i = 0; i < tries && taken && !*taken && process_.alive(); ++i) {
    let_it_run(i);
    with_shared_ = i > 0;
    taken = copy_all(i > 0 || only_pages_of_lua);
  }
  if (!process_.alive() && (!taken || !*taken)) return ended;
  if (!taken) return taken.error();
  if (snapshot_.memory == nullptr)
    return Error{Cause::internal, fmt::format("The memory of process {} grows too fast to be copied.", process_.pid())};
  return std::move(snapshot_);
}

struct ReaderOfCore {
  explicit ReaderOfCore(const CoreFile& core) : reader(core, core, stacks, {}, {}) {}
  StackTable stacks;  // empty: no stack is asked for
  StackReader reader;
};

}  // namespace

Result<HeapSnapshot> take_snapshot(Session& session, const SnapshotOptions& options) {
  session.sampler().reader().refresh();
  return LiveLook(session, options).take();
}

Result<HeapSnapshot> take_snapshot(const std::shared_ptr<const CoreFile>& core_file, const std::string& path) {
  const CoreFile& core = *core_file;
  const auto shared = std::make_shared<ReaderOfCore>(core);
  StackReader& reader = shared->reader;
  if (reader.images().empty()) reader.try_all_layouts();
  HeapSnapshot snapshot;
  snapshot.pid = core.pid();
  snapshot.command = core.command();
  snapshot.taken_ns = core.written_ns();
  Ranges ranges;
  const AddressSpace space = core.address_space();
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.may_hold_objects()) ranges.push_back({mapping.start, mapping.end});
  }
  copy_states(reader, ranges, snapshot);
  snapshot.code->use([core_file, shared](Address entry) { return symbol(shared->reader, entry); });
  if (snapshot.states.empty())
    return Error{Cause::no_lua, fmt::format("There is no lua_State in the memory of {}.", path)};
  if (const Result<void> room = check_copy(ranges, core, snapshot); !room) return room.error();
  auto image = std::make_shared<MemoryImage>();
  if (const Result<void> added = image->add(ranges); !added) return added.error();
  image->copy(core, 1);
  snapshot.bytes = image->bytes();
  snapshot.memory = std::move(image);
  return snapshot;
}

}  // namespace luaspy
