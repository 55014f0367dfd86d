#include "input/luajit_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "input/foreign_stacks.h"
#include "input/memprof_stream.h"
#include "input/raw_fields.h"
#include "input/sysprof_stream.h"

namespace luaspy {
namespace {

constexpr std::string_view sysprof = "ljp", memprof = "ljm";
constexpr int sysprof_version = 2, memprof_version = 3;

// What Lua calls is a function of Lua or C, also where the stream does not tell it from other native code.
Frame called_by_lua(Frame frame) {
  if (frame.kind == Frame::Kind::native) frame.kind = Frame::Kind::c, frame.part = Frame::Part::program;
  return frame;
}

// One place of a stream has one frame, whatever its symbols become later.
class LuajitFrames {
 public:
  LuajitFrames(const LuajitSymbols& symbols, ForeignStacks& stacks) : symbols_(symbols), stacks_(stacks) {}

  FrameId native(const LuajitPlace& place) {
    return frame(native_, place, [&] { return symbols_.frame(place); });
  }
  FrameId called(const LuajitPlace& place) {
    return frame(called_, place, [&] { return called_by_lua(symbols_.frame(place)); });
  }
  FrameId fast(std::uint64_t number) {
    return frame(fast_, number, [&] {
      Frame frame;
      frame.kind = Frame::Kind::c, frame.name = symbols_.fast_function(number);
      return frame;
    });
  }

 private:
  template <typename Key, typename Make>
  FrameId frame(std::map<Key, FrameId>& known, const Key& key, const Make& make) {
    const auto place = known.find(key);
    if (place != known.end()) return place->second;
    const FrameId id = stacks_.frame(make());
    if (stacks_.has_room()) known.emplace(key, id);
    return id;
  }

  const LuajitSymbols& symbols_;
  ForeignStacks& stacks_;
  std::map<LuajitPlace, FrameId> native_, called_;
  std::map<std::uint64_t, FrameId> fast_;
};

// The C stack misses its innermost frames: where it is all there is, the state says what was done.
StackId stack_of(const SysprofSample& sample, const LuajitSymbols& symbols, LuajitFrames& frames,
                 ForeignStacks& stacks) {
  using Kind = SysprofSample::Call::Kind;
  StackId stack = empty_stack;
  if (sample.state == SysprofSample::State::trace) return stacks.stack(stack, frames.called(sample.trace));
  for (const SysprofPart& part : joined_stack(sample, symbols)) {
    if (!part.is_call) {
      stack = stacks.stack(stack, frames.native(sample.native[part.index]));
      continue;
    }
    const SysprofSample::Call& call = sample.calls[part.index];
    stack = stacks.stack(stack, call.kind == Kind::fast ? frames.fast(call.ffid) : frames.called(call.place));
  }
  if (sample.calls.empty()) stack = stacks.stack(stack, stacks.frame(state_marker(vm_state_of(sample.state))));
  return stack;
}

Result<std::string> read_sysprof(ByteReader& in, LuajitSymbols& symbols, RecordingPart& part) {
  part.about().kind = "a stream of LuaJIT's sysprof";
  part.count(Unit::samples);
  ForeignStacks stacks(part);
  LuajitFrames frames(symbols, stacks);
  const ThreadId thread = stacks.only_thread();
  return each_sysprof_sample(in, symbols, [&](const SysprofSample& sample) {
    Sample facts;
    facts.vm_state = vm_state_of(sample.state);
    facts.stack = stack_of(sample, symbols, frames, stacks);
    return stacks.has_room() && part.tick(0, 1) && part.sample(thread, facts);
  });
}

Result<std::string> read_memprof(ByteReader& in, LuajitSymbols& symbols, RecordingPart& part) {
  using Kind = MemprofEvent::Kind;
  part.about().kind = "a stream of LuaJIT's memprof";
  const Unit unit = part.asked_for().value_or(Unit::bytes);
  part.count(unit);
  ForeignStacks stacks(part);
  LuajitFrames frames(symbols, stacks);
  const ThreadId thread = stacks.only_thread();
  MemprofBlocks blocks;
  const auto add = [&](const LuajitPlace& place, std::uint64_t bytes, std::int64_t objects) {
    Sample facts;
    facts.stack = stacks.stack(empty_stack, frames.called(place));
    const auto weight = static_cast<std::int64_t>(std::min(bytes, any_number));
    return stacks.has_room() && part.tick(0, unit == Unit::bytes ? weight : objects) && part.sample(thread, facts);
  };
  std::string torn = each_memprof_event(in, symbols, [&](const MemprofEvent& event) {
    if (part.wants_live()) {
      blocks.apply(event);
      return blocks.has_room();
    }
    if (event.kind == Kind::allocation) return add(event.place, event.new_size, 1);
    const bool grows = event.kind == Kind::reallocation && event.new_size > event.old_size;
    return !grows || unit == Unit::objects || add(event.place, event.new_size - event.old_size, 0);
  });
  for (const auto& [address, block] : blocks.blocks()) {
    if (!add(block.place, block.size, 1)) return std::string(ForeignStacks::no_room);
  }
  return torn;
}

}  // namespace

bool is_luajit_stream(std::string_view head) { return head.starts_with("ljs"); }

Result<std::string> read_luajit_head(ByteReader& in, LuajitSymbols& symbols) {
  const std::string wrong = symbols.read_table(in);
  if (!wrong.empty())
    return Error{Cause::unsupported, fmt::format("This is a stream of a profiler of LuaJIT, but {}.", wrong)};
  constexpr std::size_t size = 7;  // the profiler's letters, the version, three bytes that are reserved
  const std::optional<std::string> head = in.bytes(size, size);
  const std::string profiler = head ? head->substr(0, sysprof.size()) : "";
  if (profiler != sysprof && profiler != memprof)
    return Error{Cause::unsupported,
                 "This is a stream of LuaJIT, but neither of sysprof nor of memprof: it has symbols only."};
  const int version = static_cast<unsigned char>((*head)[profiler.size()]),
            known = profiler == sysprof ? sysprof_version : memprof_version;
  if (version != known)
    return Error{Cause::unsupported,
                 fmt::format("This is a stream of LuaJIT's {} of version {}; luaspy reads version {}.",
                             profiler == sysprof ? "sysprof" : "memprof", version, known)};
  return profiler;
}

Result<std::string> read_luajit_stream(std::istream& in, RecordingPart& part) {
  ByteReader bytes(in);
  LuajitSymbols symbols;
  const Result<std::string> profiler = read_luajit_head(bytes, symbols);
  if (!profiler) return profiler.error();
  return *profiler == sysprof ? read_sysprof(bytes, symbols, part) : read_memprof(bytes, symbols, part);
}

}  // namespace luaspy
