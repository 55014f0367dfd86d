#include "support/sample_profile.h"

#include <array>
#include <sstream>

#include "output/raw.h"
#include "profile/profile_builder.h"
#include "profile/suspended_tracks.h"
#include "support/framed.h"

namespace luaspy {
namespace {

struct Taken {
  std::uint32_t thread = 0;
  Tick tick;
  FramedSample sample;
  std::vector<HeapChange> heaps;
};

const std::vector<HeapChanges::State> heaps = {{100, 0x5555'5555'0018}, {100, 0x7fff'f000'1018}};
const std::vector<Mark> marks = {
    {Mark::Kind::abort, 12'500'000, 100, "app/main.lua", 12, 10, "NYI: bytecode FNEW at app/main.lua:13"},
    {Mark::Kind::trace, 31'000'001, 100, "app/main.lua", 30, 3, "from trace 1 exit 2, root 1, 230 bytes"},
    {Mark::Kind::blacklisted, 21'000'000, 100, "app/main.lua", 12, 11, "NYI: FastFunc \"x\"<script>"},
    {Mark::Kind::flush, 45'000'000, 100, "", 0, 0, ""}};
const std::vector<ThreadInfo> threads = {{100, "lua5.4", 100, "lua5.4 my script.lua"},
                                         {101, "worker; \"two\"", 100, "lua5.4 my script.lua"}};

// Two looks: one coroutine that has a number, and two, then three others.
std::vector<SuspendedLook> looks_of(EventTables& tables) {
  const Frame began = lua("worker", "app/main.lua", 50, 50),
              yield = {Frame::Kind::c, "coroutine.yield", "lua5.4", 0, 0};
  const auto wait = [&](int line) {
    return tables.stacks.intern(
        Stack{lua("worker", "app/main.lua", 50, line), lua("wait", "app/main.lua", 40, 41), yield});
  };
  const LabelsId labels = tables.labels.intern({{std::string(suspended_label), describe(began, false)}});
  std::vector<SuspendedLook> looks(2);
  looks[0] = {15'000'000, 15'000'000, 100, 0, "lua5.4 my script.lua", 0x5555'5555'0018, 0, {}};
  looks[0].groups = {{0, wait(52), labels, 2, 0}, {1, wait(52), labels, 1, 0}};
  looks[1] = looks[0];
  looks[1].at_ns = 45'000'000, looks[1].weight_ns = 30'000'000, looks[1].unread = 1;
  looks[1].groups = {{0, wait(52), labels, 2, 30'000'000}, {0, wait(55), no_labels, 1, 0}, {1, wait(55), labels, 1, 0}};
  return looks;
}

void write(RawWriter& raw, EventTables& tables, const Taken& taken) {
  const ThreadId thread = tables.threads.intern(threads[taken.thread]);
  if (taken.sample.loss != Loss::none) raw.lost(thread, taken.tick, taken.sample.loss, taken.sample.stopped_ns);
  else raw.sample(thread, taken.tick, numbered(tables.stacks, taken.sample));
}

Metadata sample_about(Unit unit) {
  return {"0.1.0",
          "lua5.4 \"my script\".lua",
          "/usr/bin/lua5.4",
          100,
          {"Lua 5.4.4"},
          true,
          "merged",
          100,
          10,
          1'700'000'000,
          50'000'000,
          5,
          true,
          {},
          0,
          unit};
}

std::vector<Taken> samples_of(Unit unit) {
  constexpr std::array<std::array<std::int64_t, 6>, unit_count> weights = {
      {{10'000'000, 10'000'000, 10'000'000, 11'000'000, 9'000'000, 9'000'000},
       {1'258'291, 40, 4096, 300'000, 2'621'440, 0},
       {3400, 1, 120, 2000, 700, 5}}};
  const Frame main = native("main", "lua5.4"), chunk = lua("main chunk", "app/main.lua", 0, 30),
              unknown = native("lua5.4+0x17920", "lua5.4");
  Frame work = lua("work", "app/main.lua", 10, 12);
  const Frame same_work = lua("function", "app/main.lua", 10, 14);
  work.own_name = true;
  const Frame gsub = {Frame::Kind::c, "string.gsub", "lua5.4", 0, 0},
              tail = {Frame::Kind::marker, "(...tail calls...)", {}, 0, 0};
  const Frame hostile = lua("a;b<script>alert(1)</script>\\x1b[31m", "[string \"x;y...\"]", 1, 2),
              waits = {Frame::Kind::marker, "[epoll_wait]", {}, 0, 0};
  std::vector<Taken> samples;
  const auto add = [&](std::uint32_t thread, std::int64_t at_ms, VmState state, Stack stack) {
    FramedSample sample;
    sample.quality.stacks = 1;
    sample.vm_state = state;
    sample.state = state == VmState::none ? Sample::State::sleeping : Sample::State::running;
    sample.stopped_ns = sample.state == Sample::State::running ? 20'000 : 0;
    sample.stack = std::move(stack);
    const std::int64_t weight = weights[static_cast<std::size_t>(unit)][samples.size()];
    samples.push_back({thread, {at_ms * 1'000'000, weight}, std::move(sample), {}});
  };
  add(0, 10, VmState::interpreting, {main, chunk, work});
  samples.back().heaps = {{0, 40'000, CollectorPhase::pause, false}};
  add(0, 20, VmState::c, {main, chunk, same_work, gsub});
  samples.back().heaps = {{0, 90'000, CollectorPhase::marking, false}, {1, 3'000'000, CollectorPhase::pause, false}};
  add(1, 20, VmState::none, {main, waits});
  add(0, 31, VmState::collecting, {main, chunk, work});
  samples.back().heaps = {{0, 120'000, CollectorPhase::sweeping, true}};
  add(0, 40, VmState::machine_code, {main, chunk, tail, hostile, unknown});
  samples.back().heaps = {{0, 60'000, CollectorPhase::pause, false}};
  add(1, 40, VmState::interpreting, {main, chunk, work});
  FramedSample lost;
  lost.loss = Loss::ended;
  samples.push_back({1, {50'000'000, unit == Unit::nanoseconds ? 10'000'000 : 0}, lost, {}});
  if (unit != Unit::nanoseconds) {
    for (Taken& taken : samples) taken.heaps.clear();
  }
  return samples;
}

}  // namespace

void add_sample_tracks(Profile& profile) {
  EventTables tables;
  ProfileBuilder into(tables, {}, true);
  SuspendedTracks tracks(tables, into);
  for (const SuspendedLook& look : looks_of(tables)) tracks.add(look);
  profile.tracks = into.profile().tracks;
  for (SuspendedTrack& track : profile.tracks) {
    for (SuspendedTrack::Wait& wait : track.waits)
      wait.stack = profile.stacks().intern(into.profile().stacks().frames_of(wait.stack));
  }
  profile.resolve_names();
}

Profile sample_profile(Unit unit) {
  Profile profile;
  profile.about = sample_about(unit);
  if (unit == Unit::nanoseconds) {
    for (const HeapChanges::State& state : heaps) profile.heaps.add_state(state);
  }
  for (const Taken& taken : samples_of(unit)) {
    add_framed(profile, threads[taken.thread], taken.tick, taken.sample);
    for (const HeapChange& heap : taken.heaps) profile.heaps.add(taken.tick.at_ns, heap);
  }
  if (unit == Unit::nanoseconds) profile.marks = marks;
  profile.add_loss(Loss::late, 2);
  profile.add_idle();
  profile.resolve_names();
  return profile;
}

std::string sample_recording(Unit unit) {
  std::ostringstream out;
  EventTables tables;
  RawWriter raw(tables, unit, out);
  if (unit == Unit::nanoseconds) {
    for (const HeapChanges::State& state : heaps) raw.state(state);
  }
  for (const Taken& taken : samples_of(unit)) {
    write(raw, tables, taken);
    for (const HeapChange& heap : taken.heaps) raw.heap(taken.tick, heap);
    raw.flush();
  }
  if (unit == Unit::nanoseconds) {
    for (const Mark& mark : marks) raw.mark(mark);
    for (const SuspendedLook& look : looks_of(tables)) raw.suspended(look);
  }
  raw.loss(Loss::late, 2);
  raw.idle(1);
  raw.about(sample_about(unit));
  raw.flush();
  return out.str();
}

namespace {

std::vector<Taken> kernel_samples() {
  const auto kernel = [](std::string name, Frame::Part part = Frame::Part::program, std::string file = "[kernel]") {
    Frame frame = {Frame::Kind::kernel, std::move(name), std::move(file), 0, 0};
    frame.part = part;
    return frame;
  };
  const Frame main = native("main", "lua5.4"), chunk = lua("main chunk", "app/main.lua", 0, 30),
              read = {Frame::Kind::c, "file:read", "lua5.4", 0, 0}, in_libc = native("read", "libc.so.6"),
              entry = kernel("do_syscall_64", Frame::Part::vm), call = kernel("read"),
              driver = kernel("ext4_file_read_iter", Frame::Part::program, "[ext4]"), fault = kernel("page_fault"),
              waits = {Frame::Kind::marker, "[epoll_wait]", {}, 0, 0};
  std::vector<Taken> samples;
  const auto add = [&](std::uint32_t thread, std::int64_t at_ms, Sample::State state, Stack stack) {
    FramedSample sample;
    sample.quality.stacks = 1;
    sample.state = state;
    sample.vm_state = state == Sample::State::running ? VmState::c : VmState::none;
    sample.stack = std::move(stack);
    samples.push_back({thread, {at_ms * 1'000'000, 10'000'000}, std::move(sample), {}});
  };
  add(0, 10, Sample::State::running, {main, chunk, read, in_libc, entry, call, driver});
  add(0, 20, Sample::State::running, {main, chunk, read, in_libc, entry, call});
  add(0, 30, Sample::State::running, {main, chunk, fault});
  add(1, 30, Sample::State::sleeping, {main, entry, kernel("epoll_wait"), kernel("ep_poll"), waits});
  return samples;
}

}  // namespace

Profile kernel_profile() {
  Profile profile;
  profile.about = sample_about(Unit::nanoseconds);
  for (const Taken& taken : kernel_samples()) add_framed(profile, threads[taken.thread], taken.tick, taken.sample);
  profile.resolve_names();
  return profile;
}

std::string kernel_recording() {
  std::ostringstream out;
  EventTables tables;
  RawWriter raw(tables, Unit::nanoseconds, out);
  for (const Taken& taken : kernel_samples()) write(raw, tables, taken);
  raw.about(sample_about(Unit::nanoseconds));
  raw.flush();
  return out.str();
}

}  // namespace luaspy
