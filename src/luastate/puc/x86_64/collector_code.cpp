// The instructions that compilers make of luaC_condGC, and of writing gcstate, for x86-64. They are
// followed opcode by opcode: what is looked for is how x86-64 compares, branches and calls.

#include "luastate/puc/collector_code.h"

#include <algorithm>
#include <map>
#include <set>

#include "arch/x86_64/instruction.h"

namespace luaspy {
namespace {

using x86_64::Instruction;
using x86_64::read_instruction;

// From luaC_step there are at most two calls to singlestep (5.4, not optimised: luaC_step, incstep,
// singlestep), and one more to atomic.
constexpr int deepest = 3;
constexpr std::size_t most_functions = 512;
// Instructions between the comparison and the call of luaC_step, which save pc and top.
constexpr std::size_t most_before_call = 24;
constexpr std::int64_t largest_state = 9;  // GCScallfin or similar (lgc.h)
constexpr unsigned stack_pointer = 4;      // its number in instructions

// lmem.h, lgc.h: the fields that luaC_condGC compares. 5.1 has GCthreshold right below totalbytes
// (lstate.h).
struct Fields {
  explicit Fields(const Layout& layout)
      : G(layout.L_G),
        gcstate(layout.G_gcstate),
        has_debt(layout.G_GCdebt != no_field),
        bytes(layout.G_totalbytes),
        limit(has_debt ? layout.G_GCdebt : layout.G_totalbytes - 8),
        below_zero(layout.bytecode == Bytecode::lua55) {}
  std::int64_t G, gcstate;
  bool has_debt;
  std::int64_t bytes, limit;  // totalbytes; GCdebt or GCthreshold
  bool below_zero;            // 5.5 counts GCdebt downwards
};

bool writes_state(const Instruction& instruction, std::int64_t displacement) {
  if (instruction.two_byte || instruction.displacement != displacement) return false;
  const std::optional<unsigned> base = instruction.base();
  if (!base || *base == stack_pointer) return false;
  // mov m, imm; mov m, r: of 8 bits, or of 16, since gckind is the next byte and both may be
  // written in one instruction.
  if (instruction.opcode == 0xc6 || instruction.opcode == 0xc7)
    return !instruction.wide() && (instruction.immediate & 0xff) <= largest_state;
  return instruction.opcode == 0x88 || (instruction.opcode == 0x89 && !instruction.wide());
}

// Follows luaV_execute's instructions in order, and tracks which of its registers hold values of
// global_State.
class CallsOfStep {
 public:
  CallsOfStep(const Fields& fields, const MachineFunction& execute, const FunctionAt& function_at)
      : fields_(fields), execute_(execute), function_at_(function_at) {}

  // How often each function is called at a place where the collector is due.
  std::map<Address, int> run() {
    for (std::size_t at = 0; at < execute_.code.size();) {
      const std::optional<Instruction> instruction = read_instruction(execute_.code, at);
      at += instruction ? instruction->length : 1;
      if (instruction) follow(*instruction, execute_.start + at);
    }
    return std::move(votes_);
  }

 private:
  enum What : unsigned {
    nothing = 0,
    state = 1,
    bytes = 2,
    limit = 4
  };  // a global_State, or values of its fields; -O0: a register may be two of these
  enum class Compared { no, limit_with_zero, bytes_with_limit, limit_with_bytes } compared_ = Compared::no;

  unsigned loaded(const Instruction& instruction) const {
    const std::optional<unsigned> base = instruction.base();
    if (!base || !instruction.wide()) return nothing;
    unsigned what = instruction.displacement == fields_.G ? unsigned{state} : unsigned{nothing};
    if ((has_[*base] & state) == 0) return what;
    if (instruction.displacement == fields_.limit) what |= limit;
    if (instruction.displacement == fields_.bytes) what |= bytes;
    return what;
  }

  void compare(unsigned left, unsigned right) {
    if ((left & bytes) != 0 && (right & limit) != 0) compared_ = Compared::bytes_with_limit;
    else if ((left & limit) != 0 && (right & bytes) != 0) compared_ = Compared::limit_with_bytes;
    else compared_ = Compared::no;
  }

  void follow(const Instruction& instruction, Address next) {
    const unsigned op = instruction.opcode;
    if (instruction.flow() == Instruction::Flow::branch) {
      if (compared_ != Compared::no) vote(op & 15, next, next + static_cast<Address>(instruction.immediate));
      compared_ = Compared::no;
    } else if (instruction.is_call()) {
      for (const unsigned number : {0u, 1u, 2u, 6u, 7u, 8u, 9u, 10u, 11u})
        has_[number] = nothing;  // all except the callee-saved ones
    } else if (instruction.two_byte) {
      if (op >= 0xb6 && op <= 0xbf && op != 0xba) has_[instruction.reg()] = nothing;  // movzx, movsx
    } else if (op == 0x8b) {                                                          // mov r, r/m
      has_[instruction.reg()] = instruction.mode() == 3 ? has_[instruction.rm()] : loaded(instruction);
    } else if (op == 0x89 && instruction.mode() == 3) {  // mov r/m, r
      has_[instruction.rm()] = has_[instruction.reg()];
    } else if (op == 0x8d || op == 0x63) {  // lea, movsxd
      has_[instruction.reg()] = nothing;
    } else if (op == 0x83 && (instruction.reg() & 7) == 7) {  // cmp r/m, imm8
      const unsigned what = instruction.mode() == 3 ? has_[instruction.rm()] : loaded(instruction);
      compared_ = fields_.has_debt && instruction.immediate == 0 && (what & limit) != 0 ? Compared::limit_with_zero
                                                                                        : Compared::no;
    } else if (op == 0x85) {  // test r/m, r
      const bool itself = instruction.mode() == 3 && instruction.wide() && instruction.reg() == instruction.rm();
      compared_ = fields_.has_debt && itself && (has_[instruction.reg()] & limit) != 0 ? Compared::limit_with_zero
                                                                                       : Compared::no;
    } else if (op == 0x39 || op == 0x3b) {  // cmp r/m, r; cmp r, r/m
      const unsigned there = instruction.mode() == 3 ? has_[instruction.rm()] : loaded(instruction),
                     here = has_[instruction.reg()];
      if (op == 0x39) compare(there, here);
      else compare(here, there);
    }
  }

  // Counts the call on the branch that leads to luaC_step. Conditions are numbered as in jumps: 2
  // below, 3 not below, 6 below or equal, 7 above, 14 less or equal, 15 greater.
  void vote(unsigned condition, Address next, Address target) {
    unsigned due = fields_.below_zero ? 14 : 15;
    if (compared_ == Compared::bytes_with_limit) due = 3;
    if (compared_ == Compared::limit_with_bytes) due = 6;
    if (condition == due) count_call(target);
    else if (condition == (due ^ 1)) count_call(next);
  }

  void count_call(Address from) {
    MachineFunction elsewhere;  // a cold part of luaV_execute
    const MachineFunction* function = &execute_;
    if (from - execute_.start >= execute_.code.size()) {
      elsewhere = function_at_(from);
      function = &elsewhere;
    }
    for (std::size_t i = 0; i < most_before_call && from - function->start < function->code.size(); ++i) {
      const std::optional<Instruction> instruction = read_instruction(function->code, from - function->start);
      if (!instruction || instruction->flow() == Instruction::Flow::end) return;
      from += instruction->length;
      const Address target = from + static_cast<Address>(instruction->immediate);
      if (instruction->is_call()) {
        ++votes_[target];
        return;
      }
      if (instruction->flow() == Instruction::Flow::jump) from = target;
    }
  }

  const Fields& fields_;
  const MachineFunction& execute_;
  const FunctionAt& function_at_;
  std::array<unsigned, 16> has_{};
  std::map<Address, int> votes_;
};

struct Seen {
  bool writes = false;        // writes gcstate
  std::set<Address> callees;  // and targets of jumps out of the function
};

Seen look_at(const MachineFunction& function, std::int64_t gcstate) {
  Seen seen;
  for (std::size_t at = 0; at < function.code.size();) {
    const std::optional<Instruction> instruction = read_instruction(function.code, at);
    at += instruction ? instruction->length : 1;
    if (!instruction) continue;
    seen.writes |= writes_state(*instruction, gcstate);
    const bool leads = instruction->is_call() || instruction->flow() == Instruction::Flow::jump ||
                       instruction->flow() == Instruction::Flow::branch;
    const Address target = function.start + at + static_cast<Address>(instruction->immediate);
    if (leads && target - function.start >= function.code.size()) seen.callees.insert(target);
  }
  return seen;
}

}  // namespace

bool CollectorCode::has(Address function) const { return std::ranges::binary_search(functions, function); }

CollectorCode find_collector_code(const Layout& layout, const MachineFunction& execute, const FunctionAt& function_at) {
  const Fields fields(layout);
  const std::map<Address, int> votes = CallsOfStep(fields, execute, function_at).run();
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  if (most == votes.end()) return {};
  std::set<Address> met, found, level = {most->first};
  for (int depth = 0; depth <= deepest; ++depth) {
    std::set<Address> next;
    for (const Address address : level) {
      if (met.size() == most_functions) break;
      const MachineFunction function = function_at(address);
      if (function.start == 0 || function.start == execute.start || !met.insert(function.start).second) continue;
      const Seen seen = look_at(function, fields.gcstate);
      if (seen.writes) found.insert(function.start);
      next.insert(seen.callees.begin(), seen.callees.end());
    }
    level = std::move(next);
  }
  if (found.empty()) return {};  // then it was not luaC_step
  found.insert(most->first);
  return {most->first, {found.begin(), found.end()}};
}

bool joins_collector(const Layout& layout, const CollectorCode& collector, const MachineFunction& function) {
  if (collector.has(function.start)) return false;
  // This is called for every function of a program, so bytes that look like a call are tried first.
  const auto works_through = [&](Address target) { return target != collector.step && collector.has(target); };
  for (std::size_t i = 0; i + 5 <= function.code.size(); ++i) {
    if (function.code[i] != std::byte{0xe8} ||
        !works_through(function.start + i + 5 +
                       static_cast<Address>(std::int64_t{load<std::int32_t>(function.code, i + 1)})))
      continue;
    const Seen seen = look_at(function, layout.G_gcstate);
    return std::ranges::count_if(seen.callees, works_through) >= (seen.writes ? 1 : 2);
  }
  return false;
}

}  // namespace luaspy
