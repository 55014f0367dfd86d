#include "heapreport/take_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "attach/read_resident_memory.h"
#include "attach/resident_pages.h"
#include "attach/standstill.h"
#include "heap/heap_contents.h"
#include "heap/heap_copy.h"
#include "heap/memory_image.h"
#include "heapreport/heap_room.h"
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

// Objects are in memory that the process has written itself. Constants of the program are left out:
// a table that refers to one there has no hash part (ltable.c, dummynode).
bool may_have_objects(const Mapping& mapping) { return mapping.readable && mapping.writable && !mapping.shared; }

Ranges plan(const Process& process) { return resident_pages(process, may_have_objects); }

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
  const Frame frame = reader.native_code().describe_entry(entry);
  if (frame.name.starts_with('[')) return "";  // not known
  return frame.name.starts_with(frame.file) ? frame.name : fmt::format("{} ({})", frame.name, frame.file);
}

void take_states(StackReader& reader, const Ranges& ranges, HeapSnapshot& snapshot) {
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

// Copies only the pages that have Lua objects. They are found by reading all objects while the
// process runs. In the standstill they are copied again, and all objects are read once more: from
// the copy, and where the process has made new ones, from the process. False: not all were found.
bool copy_pages_of_lua(Session& session, const Ranges& all, HeapSnapshot& snapshot) {
  constexpr int tries = 3, readings = 4;
  constexpr std::size_t page = HeapCopy::page_size, least = 64 << 20;
  const Memory& live = session.target().memory();
  for (int i = 0; i < tries; ++i) {
    let_it_run(i);
    snapshot.memory.reset();
    const std::uint64_t used = heap_bytes(live, snapshot.states), most = 4 * used + least;
    if (!check_room(most, used)) return false;  // nor is there for all of it: that is said then
    const Ranges now = i == 0 ? all : plan(session.target().process());
    HeapCopy copy(live, most);
    copy.know(space_of(now));
    const auto use_all = [&] {
      return std::ranges::all_of(snapshot.states,
                                 [&](const HeapSnapshot::State& state) { return use_heap(copy, *state.lua, state.G); });
    };
    for (int reading = 0; reading < readings && !use_all(); ++reading) copy.learn(false);
    Standstill standstill(session.target());
    copy.copy((used / 4 + least) / page);
    bool is_whole = use_all();
    end(standstill, snapshot);
    copy.seal();
    is_whole &= !copy.has_filled_all();
    auto image = std::make_shared<MemoryImage>();
    // Not constants of the program, which references may lead to.
    if (!is_whole || !image->add(common_parts(copy.ranges(), plan(session.target().process())))) continue;
    image->copy(copy, 1);
    snapshot.bytes = image->bytes();
    snapshot.memory = std::move(image);
    if (snapshot.of_one_instant && adds_up(snapshot)) return true;
  }
  return false;
}

}  // namespace

Result<HeapSnapshot> take_snapshot(Session& session, bool with_resident) {
  constexpr int tries = 5;
  Process& process = session.target().process();
  StackReader& reader = session.sampler().reader();
  HeapSnapshot snapshot;
  reader.refresh();
  snapshot.pid = process.pid();
  snapshot.command = process.command();
  Ranges all;
  // The process runs meanwhile. A look at a state that is just being changed may not believe it.
  for (int i = 0; i < tries && snapshot.states.empty(); ++i) {
    let_it_run(i);
    all = plan(process);
    take_states(reader, all, snapshot);
  }
  snapshot.code->use([&reader](Address entry) { return symbol(reader, entry); });
  if (snapshot.states.empty())
    return Error{Cause::not_initialised,
                 fmt::format("There is no lua_State in the memory of process {}.", process.pid())};
  const bool only_pages_of_lua = !with_resident &&
                                 is_mostly_other(snapshot, session.target().memory(), total_bytes(all));
  if (only_pages_of_lua && copy_pages_of_lua(session, all, snapshot)) return snapshot;
  for (int i = 0; i < tries; ++i) {
    let_it_run(i);
    snapshot.memory.reset();
    auto image = std::make_shared<MemoryImage>();
    const Ranges planned = plan(process);
    Result<void> prepared = check_copy(planned, session.target().memory(), snapshot);
    if (prepared) prepared = image->add(planned);
    if (!prepared) {
      const bool was_stopped = i > 0 || only_pages_of_lua;
      return Error{prepared.error().cause,
                   prepared.error().text + (was_stopped ? "" : " The process was not stopped.")};
    }
    Standstill standstill(session.target());
    if (with_resident) {
      Result<ResidentMemory> resident = read_resident_memory(process.pid());
      if (!resident) return resident.error();
      snapshot.resident = std::move(*resident);
    }
    const Result<void> added = image->add(missing(plan(process), *image));
    if (added) image->copy(session.target().memory());
    snapshot.stack_pointers.clear();
    for (const Standstill::Member& member : standstill.members()) {
      if (member.state.kind == ThreadState::Kind::sleeping) snapshot.stack_pointers.push_back(member.state.sp);
    }
    end(standstill, snapshot);
    if (!added) return added.error();
    snapshot.bytes = image->bytes();
    snapshot.memory = std::move(image);
    if (snapshot.of_one_instant && adds_up(snapshot)) break;
  }
  return snapshot;
}

Result<HeapSnapshot> take_snapshot(const std::shared_ptr<const CoreFile>& core_file, const std::string& path) {
  const CoreFile& core = *core_file;
  const auto shared_reader = std::make_shared<StackReader>(core, core, MergeOptions{}, WalkLimits{});
  StackReader& reader = *shared_reader;
  if (reader.images().empty()) reader.try_all_rows();
  HeapSnapshot snapshot;
  snapshot.pid = core.pid();
  snapshot.command = core.command();
  snapshot.taken_ns = core.written_ns();
  Ranges ranges;
  const AddressSpace space = core.address_space();
  for (const Mapping& mapping : space.mappings()) {
    if (may_have_objects(mapping)) ranges.push_back({mapping.start, mapping.end});
  }
  take_states(reader, ranges, snapshot);
  snapshot.code->use([core_file, shared_reader](Address entry) { return symbol(*shared_reader, entry); });
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
