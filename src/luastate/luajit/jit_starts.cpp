#include "luastate/luajit/jit_starts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "luastate/luajit/trace_errors.h"

namespace luaspy {
namespace {

using State = JitStart::State;

class StartSearch {
 public:
  StartSearch(const LuajitLayout& layout, const Prototype& prototype,
              const std::function<std::uint32_t(std::uint32_t)>& original)
      : layout_(layout), prototype_(prototype), original_(original) {}

  std::vector<JitStart> find() {
    if (prototype_.code.empty()) return {};
    starts_.push_back(entry());
    add_uncompiled(1, static_cast<std::int64_t>(prototype_.code.size()) - 1);
    for (std::uint32_t at = 1; at < prototype_.code.size(); ++at) add_loop(at);
    return std::move(starts_);
  }

 private:
  std::string name_at(std::uint32_t at) const { return name_of(prototype_.code[at]); }
  std::string name_of(std::uint32_t instruction) const { return opcode_name(layout_, instruction & 0xff); }
  static std::uint32_t d_of(std::uint32_t instruction) { return instruction >> 16; }
  // lj_bc.h, bc_j: of the instruction after this one.
  static std::int64_t jump_of(std::uint32_t instruction) {
    constexpr std::int64_t bias = 0x8000;
    return std::int64_t{d_of(instruction)} - bias;
  }

  JitStart entry() const {
    const std::string name = name_at(0);
    JitStart start;
    start.line = start.first_line = prototype_.line_defined;
    start.last_line = prototype_.last_line_defined;
    // vm_x64.dasc, BC_FUNCV: calls of functions with ... are not counted.
    if (name.ends_with('V')) start.state = State::never;
    else if (name.starts_with('I')) start.state = State::blacklisted;
    else if (name.starts_with('J')) start.state = State::compiled, start.trace = d_of(prototype_.code[0]);
    return start;
  }

  // Adds a loop whose body are these instructions; `at` is the one at which it is counted.
  void add(std::uint32_t at, State state, std::int64_t from, std::int64_t to) {
    const auto last = static_cast<std::int64_t>(prototype_.code.size()) - 1;
    if (from < 1 || to > last || from > to) from = to = at;
    JitStart start;
    start.position = at;
    start.state = state;
    if (state == State::compiled) start.trace = d_of(prototype_.code[at]);
    start.line = start.first_line = start.last_line = prototype_.line(static_cast<int>(at));
    for (std::int64_t i = from; i <= to; ++i) {
      const int line = prototype_.line(static_cast<int>(i));
      start.first_line = std::min(start.first_line, line);
      start.last_line = std::max(start.last_line, line);
    }
    starts_.push_back(start);
    add_uncompiled(from, to);
  }

  // lj_record.c, lj_record_ins.
  void add_uncompiled(std::int64_t from, std::int64_t to) {
    JitStart& start = starts_.back();
    for (std::int64_t i = from; i <= to && start.uncompiled.size() < JitStart::most_uncompiled; ++i) {
      const std::string name = name_at(static_cast<std::uint32_t>(i));
      if (name != "FNEW" && name != "UCLO" && !(layout_.is_20 && (name == "CAT" || name == "TSETM"))) continue;
      start.uncompiled.push_back({name, static_cast<int>(prototype_.code[static_cast<std::size_t>(i)] & 0xff),
                                  prototype_.line(static_cast<int>(i))});
    }
  }

  void add_loop(std::uint32_t at) {
    std::uint32_t instruction = prototype_.code[at];
    std::string name = name_of(instruction);
    State state = State::open;
    if (name == "JFORL" || name == "JITERL" || name == "JLOOP") {
      state = State::compiled;
      instruction = original_(instruction);
      name = name_of(instruction);
    } else if (name == "IFORL" || name == "IITERL" || name == "ILOOP") {
      state = State::blacklisted;
      name.erase(0, 1);
    }
    // lj_parse.c: FORL and ITERL jump back to the body; LOOP has the end of it.
    if (name == "FORL") {
      add(at, state, at + 1 + jump_of(instruction), at);
    } else if (name == "ITERL") {
      if (pairs_at_ != at) return add(at, state, at + 1 + jump_of(instruction), at);
      if (state == State::open) return;
      starts_.back().state = state;
      if (state == State::compiled) starts_.back().trace = d_of(prototype_.code[at]);
    } else if (name == "LOOP") {
      add(at, state, at, at + jump_of(instruction));
    } else if (name == "ITERN") {
      // The jump back is in the ITERL that follows. Releases before 2021 count only that; later ones also do, once
      // ITERN is blacklisted.
      if (at + 1 >= prototype_.code.size()) return;
      const std::uint32_t next = prototype_.code[at + 1];
      pairs_at_ = at + 1;
      add(at, state, at + 2 + jump_of(name_of(next) == "JITERL" ? original_(next) : next), at + 1);
      starts_.back().also = pairs_at_;
    }
  }

  const LuajitLayout& layout_;
  const Prototype& prototype_;
  const std::function<std::uint32_t(std::uint32_t)>& original_;
  std::vector<JitStart> starts_;
  std::uint32_t pairs_at_ = 0;  // the ITERL of a loop that ITERN counts
};

}  // namespace

std::vector<JitStart> find_starts(const LuajitLayout& layout, const Prototype& prototype,
                                  const std::function<std::uint32_t(std::uint32_t)>& original) {
  return StartSearch(layout, prototype, original).find();
}

}  // namespace luaspy
