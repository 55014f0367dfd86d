#include "luastate/puc/live_pc.h"

#include <algorithm>

#include "luastate/opcode.h"

namespace luaspy {
namespace {

// Scores stop here, so that they can still change when a module is replaced.
constexpr int certain = 64;
constexpr int sure = 8;

}  // namespace

std::array<Address, LivePc::places> LivePc::values(const NativeFrame& execute, const Memory& stack) const {
  std::array<Address, places> values{};
  std::size_t place = 0;
  for (const unsigned number : machine_.callee_saved) values[place++] = execute.registers[number];
  if (execute.cfa <= execute.sp) return values;
  const std::size_t words = std::min<std::size_t>((execute.cfa - execute.sp) / 8, frame_slots);
  std::array<Address, frame_slots> slots;
  const Address lowest = execute.cfa - 8 * words;
  if (!stack.read(lowest, std::as_writable_bytes(std::span(slots).first(words)))) return values;
  for (std::size_t i = 0; i < words; ++i)
    values[place + i] = slots[words - 1 - i];  // place is the distance from the CFA
  return values;
}

void LivePc::observe(const NativeFrame& execute, const LuaCall& call, const Memory& stack) {
  if (!call.has_pc(call.saved_pc)) return;
  Evidence& evidence = by_function_[execute.function];
  const auto now = values(execute, stack);
  observe(evidence.score, now, call.saved_pc, 2);
  observe(evidence.executed, now, call.ci, 8);
}

void LivePc::observe_executed(const NativeFrame& execute, Address ci, const Memory& stack) {
  observe(by_function_[execute.function].executed, values(execute, stack), ci, 8);
}

// A place that holds the value by chance holds something else next time.
void LivePc::observe(Scores& scores, const std::array<Address, places>& now, Address value, int penalty) {
  for (std::size_t i = 0; i < places; ++i)
    scores[i] = now[i] == value ? std::min(scores[i] + 1, certain) : std::max(scores[i] - penalty, 0);
}

Address LivePc::surest(const Scores& scores, const std::array<Address, places>& now, int needed) {
  const auto best = std::ranges::max_element(scores);
  return *best >= needed ? now[static_cast<std::size_t>(best - scores.begin())] : 0;
}

Address LivePc::executed(const NativeFrame& execute, const Memory& stack) const {
  const auto known = by_function_.find(execute.function);
  return known != by_function_.end() ? surest(known->second.executed, values(execute, stack), certain / 2) : 0;
}

Address LivePc::sure_pc(const NativeFrame& execute, const Memory& stack) const {
  const auto known = by_function_.find(execute.function);
  return known != by_function_.end() ? surest(known->second.score, values(execute, stack), sure) : 0;
}

Address LivePc::pc(const ExecutedCall& executed, const Prototype* prototype, const Memory& stack,
                   const NativeFunctions& functions) {
  const NativeFrame& execute = *executed.execute;
  const LuaCall& call = executed.state.walk.calls[executed.call];
  const LuaCall* const caller = executed.state.walk.caller_of(executed.call);
  Evidence& evidence = by_function_[execute.function];
  if (!evidence.hinted) {
    evidence.hinted = true;
    // A hint for code that has not been observed yet: pc is the register to which machine code adds
    // 4 most often.
    const auto steps = machine_.code.additions(functions.code(execute), 4);
    for (std::size_t i = 0; i < machine_.callee_saved.size(); ++i)
      evidence.score[i] += std::min(steps[machine_.callee_saved[i]], 6);
  }
  const auto now = values(execute, stack);
  // luaV_execute still has the caller's pc: luaD_precall is setting the call up, and its saved pc
  // may belong to an earlier call with the same CallInfo.
  const Address likely = surest(evidence.score, now, sure);
  if (!executed.is_top && likely != 0 && caller != nullptr && likely == caller->saved_pc && !call.has_pc(likely))
    return call.code;
  // OP_NEWTABLE allocates before it saves pc, after stepping over its extra argument (lvm.c of 5.4
  // and 5.5). gcc keeps pc in the frame then, and nothing else shows which slot it is.
  const auto registers = std::span(now).first(machine_.callee_saved.size());
  if (!executed.is_top && prototype != nullptr &&
      std::ranges::none_of(registers, [&](Address value) { return call.has_pc(value); })) {
    for (const Address value : std::span(now).subspan(registers.size())) {
      if (is_after_new_table(*prototype, call, value)) return value;
    }
  }
  std::size_t best = places;
  for (std::size_t i = 0; i < places; ++i) {
    if (!call.has_pc(now[i])) continue;
    // Without evidence only registers count, since a frame contains outdated words.
    const int needed = i < machine_.callee_saved.size() ? 0 : 1;
    if (evidence.score[i] >= needed && (best == places || evidence.score[i] > evidence.score[best])) best = i;
  }
  return best != places ? now[best] : call.saved_pc;
}

bool LivePc::is_after_new_table(const Prototype& prototype, const LuaCall& call, Address pc) {
  const int index = call.index_of(pc);
  if (!call.has_pc(pc) || index < 1 || static_cast<std::size_t>(index) >= prototype.code.size()) return false;
  const Encoding& encoding = encoding_of(prototype.bytecode);
  const auto is = [&](int at, std::string_view name) {
    const auto opcode = static_cast<std::size_t>(encoding.opcode.of(prototype.code[static_cast<std::size_t>(at)]));
    return opcode < encoding.opcodes.size() && encoding.opcodes[opcode].name == name;
  };
  return is(index, "EXTRAARG") && is(index - 1, "NEWTABLE");
}

}  // namespace luaspy
