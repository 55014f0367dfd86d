#include "doctor/looks.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/mode.h"
#include "base/text.h"
#include "sampling/session.h"
#include "system/call_names.h"

namespace luaspy {
namespace {

constexpr std::size_t most_looked_at = 64, most_in_full = 8, most_tried_words = 1 << 14;

// The names of Lua functions belong to the program and are private; the number of frames of each
// kind is not.
std::vector<std::pair<std::string, std::size_t>> shape_of(const Stack& stack) {
  std::vector<std::pair<std::string, std::size_t>> shape;
  for (std::size_t i = 0; i < stack.size();) {
    std::size_t end = i + 1;
    const bool marker = stack[i].kind == Frame::Kind::marker;
    while (!marker && end < stack.size() && stack[end].kind == stack[i].kind) ++end;
    constexpr std::array kinds = {"Lua", "C", "native", ""};
    if (marker) shape.emplace_back(printable(stack[i].name), 0);
    else shape.emplace_back(kinds[static_cast<std::size_t>(stack[i].kind)], end - i);
    i = end;
  }
  return shape;
}

std::string name_of(Step step) {
  constexpr std::array names = {"registers", "cfi", "rule", "code", "scan"};
  return names[static_cast<std::size_t>(step)];
}

NativeFacts native_facts(const StackReader& reader, const NativeFrame& frame) {
  const NativeCode& code = reader.native_code();
  NativeFacts facts{
      address_text(reader, frame.lookup), name_of(frame.step), printable(code.describe(frame).name), frame.sp, {}};
  if (frame.in_trace) facts.is.emplace_back("machine code");
  else if (code.executes_lua(frame)) facts.is.emplace_back("executes Lua");
  if (code.carries(frame)) facts.is.emplace_back("carries");
  if (code.lua_code(frame) == NativeFunctions::LuaCode::yes) facts.is.emplace_back("Lua's own");
  else if (code.in_core_module(frame)) facts.is.emplace_back("in a core's module");
  return facts;
}

std::vector<NativeFacts> natives_of(const StackReader& reader, const std::vector<NativeFrame>& natives) {
  std::vector<NativeFacts> facts;
  for (std::size_t i = 0; i < natives.size(); ++i) {
    if (i == shown_at_each_end && natives.size() > 2 * shown_at_each_end) i = natives.size() - shown_at_each_end;
    facts.push_back(native_facts(reader, natives[i]));
  }
  return facts;
}

LookFacts look_facts(StackReader& reader, const Sampler::Sampled& sampled, bool in_full) {
  const auto& [sample, from] = sampled;
  LookFacts facts;
  if (from == nullptr) {
    facts.lost = name(sample.loss);
    return facts;
  }
  facts.state = name(sample.state), facts.vm_state = name(sample.vm_state);
  facts.stopped_ns = sample.stopped_ns;
  facts.quality = sample.quality;
  Stack shown = reader.stacks().frames_of(sample.stack);
  keep_shown(Mode::merged, shown);
  facts.shape = shape_of(shown);
  for (const ActiveState& state : from->active())
    facts.states.push_back({state.L, state.G, state.boundary, state.lua->name()});
  facts.stack_bytes = from->snapshot().stack().size(), facts.stack_start = from->snapshot().stack_start();
  facts.in_full = in_full;
  facts.native_count = from->natives().size();
  if (in_full) facts.natives = natives_of(reader, from->natives());
  return facts;
}

// Collects the words of a stack that could point to a lua_State.
void collect_words(const AddressSpace& space, const Snapshot& snapshot, std::set<Address>& words) {
  const std::span<const std::byte> stack = snapshot.stack();
  const Address start = snapshot.stack_start();
  const auto consider = [&](Address word) {
    if (!plausible_pointer(word) || word - start < stack.size() || words.size() >= most_tried_words) return;
    const Mapping* const mapping = space.find(word);
    if (mapping != nullptr && mapping->writable) words.insert(word);
  };
  for (std::size_t at = 0; at + 8 <= stack.size(); at += 8) {
    const Address word = load<Address>(stack, at);
    consider(word), consider(word & 0xffffffff), consider(word >> 32);
  }
}

}  // namespace

ThreadLooks look_at_threads(Session& session) {
  constexpr int looks_each = 3, tries = 10;
  ThreadLooks looks;
  StackReader& reader = session.sampler().reader();
  std::vector<Thread*> threads;
  for (const auto& thread : session.target().process().threads()) threads.push_back(thread.get());
  const std::size_t looked_at = std::min(threads.size(), most_looked_at);
  looks.left_out = threads.size() - looked_at;
  for (std::size_t i = 0; i < looked_at; ++i) {
    Thread& thread = *threads[i];
    const ThreadState state = thread.state();
    const Thread::Times times = thread.times();
    const bool sleeps = state.kind == ThreadState::Kind::sleeping;
    ThreadFacts& facts = looks.threads.emplace_back(ThreadFacts{thread.tid(),
                                                                std::string(1, thread.state_letter()),
                                                                sleeps ? system_call_name(state.system_call) : "",
                                                                static_cast<double>(times.on_cpu) / 1e9,
                                                                static_cast<double>(times.waited_for_cpu) / 1e9,
                                                                {}});
    if (looks.any == 0) looks.any = thread.tid();
    for (int look = 0, tried = 0; look < looks_each && tried < tries; ++tried) {
      const std::optional<Sampler::Sampled> sampled = session.sampler().sample(thread);
      session.sampler().do_deferred_work();
      if (!sampled || sampled->sample.again) break;
      if (sampled->sample.loss == Loss::moved && tried + 1 < tries) continue;
      const bool has_lua = sampled->sample.quality.with_lua != 0;
      facts.looks.push_back(look_facts(reader, *sampled, i < most_in_full || has_lua));
      ++look;
      if (sampled->from == nullptr) break;
      if (looks.with_lua == 0 && has_lua) looks.with_lua = thread.tid();
      collect_words(reader.space(), sampled->from->snapshot(), looks.words);
    }
  }
  return looks;
}

}  // namespace luaspy
