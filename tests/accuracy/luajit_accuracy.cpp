// How accurate LuaJIT's stacks are. A LuaJIT runs shadow.lua, which records in a table which
// functions are running, on which coroutines and at which lines, also in machine code; it is
// stopped at random. In every stop the same components run in the same order as in Sampler, and
// their result is compared with the table.
//
//   luajit_accuracy [--samples N] [--seconds N] [--jit on|off] [--verbose] TARGETS [NAME...]
//
// TARGETS/luajits.tsv lists the LuaJITs; without names, all are run. Prints a line for each, with
// machine code and without; status 1 if one of them misses a bound of `limits`. --seconds: for all
// of them together; there are fewer samples then, but never fewer than `fewest_samples`: on a busy
// machine it takes longer.
//
// Between entering a function and recording that there are some instructions, as there are between
// recording that it is left and leaving it. In a stop there, either is right; the target is stepped
// on to see what it is about to record, and a stop that cannot be decided is counted as an edge.

#include <fmt/format.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/traces.h"
#include "stopping.h"

namespace luaspy {
namespace {

constexpr int steps_to_telling = 200, steps_elsewhere = 20;
// When the table names another thread than luaspy. What a coroutine does before it records that it
// runs takes some 200 instructions, and more where machine code is recorded meanwhile.
constexpr int steps_to_other_thread = 20'000;
constexpr int longest_pause_us = 1500;
constexpr std::int64_t fewest_samples = 200;
constexpr int loaded_offset = 10000;  // shadow.lua: functions of the chunk that it loads

struct LuajitTarget {
  std::string name;
  std::vector<std::string> command;
  bool gc64 = true;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

std::vector<LuajitTarget> read_targets(const std::string& directory) {
  std::vector<LuajitTarget> targets;
  std::ifstream file(directory + "/luajits.tsv");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> columns = split(line, '\t');  // name, version, kind, command, core, shape, gc64
    if (columns.size() >= 7) targets.push_back({columns[0], split(columns[3], ' '), columns[6] == "yes"});
  }
  return targets;
}

// The command that runs shadow.lua on a LuaJIT.
std::vector<std::string> words_of(const LuajitTarget& target, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = target.command;
  words.push_back(LUASPY_WORKLOADS "/luajit/shadow.lua");
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// shadow.lua's table: its address and the distance of its parts.
struct Table {
  unsigned long long address = 0, stride = 0;
  int finalizer = 0;  // the function that runs whenever memory is asked for
  int thrower = 0;    // the one that raises errors
};
bool read_table(const std::string& said, Table& table) {
  return std::sscanf(said.c_str(), "SHADOW %llx %llu %d %d", &table.address, &table.stride, &table.finalizer,
                     &table.thrower) == 4;
}

// A running Lua function, identified by the line where it is defined, and its current line.
struct Place {
  int function = 0, line = 0;
  bool operator==(const Place&) const = default;
};
constexpr int collected = -1;  // Place::function: it was collected before its name could be read

bool same_function(const Place& a, const Place& b) {
  return a.function == b.function || (a.function == collected && b.function >= loaded_offset) ||
         (b.function == collected && a.function >= loaded_offset);
}

struct Told {
  bool good = false;
  bool on_main = false;
  Address thread = 0;        // of a coroutine
  std::vector<Place> calls;  // outermost first
  Place left;                // the function that was left last, if it may not have returned yet
  std::uint64_t at = 0, line_slot = 0;
};

// shadow.lua's table, read while the target is stopped.
class Shadow {
 public:
  Shadow(const Memory& memory, const LuajitLayout& layout, Address table, std::uint64_t stride)
      : memory_(memory), layout_(layout), table_(table), stride_(stride) {}

  Told read() const {
    Told told;
    const Address array = slots();
    told.at = word(array, 1);
    std::uint64_t innermost = number(told.at);
    told.line_slot = word(array, innermost + 1);
    told.left = {static_cast<int>(number(word(array, innermost + 2))),
                 static_cast<int>(number(word(array, innermost + 3)))};
    constexpr int most_parts = 24;
    bool first = true;
    std::vector<std::uint64_t> part;
    for (int i = 0; i < most_parts && innermost >= stride_; ++i) {
      const std::uint64_t base = innermost - innermost % stride_;
      part.resize(innermost + 2 - base);
      if (!memory_.read(array + 8 * base, std::as_writable_bytes(std::span(part)))) return told;
      if (first) {
        told.on_main = base == stride_;
        told.thread = base + 1 < innermost ? number(part[1]) : number(word(array, base + 1));
        first = false;
      }
      for (std::uint64_t at = innermost; at >= base + 2; at -= 2) {
        told.calls.push_back(
            {static_cast<int>(number(part[at - base])), static_cast<int>(number(part[at - base + 1]))});
      }
      if (base == stride_) {
        std::ranges::reverse(told.calls);
        told.good = true;
        return told;
      }
      innermost = number(part[0]);
    }
    return told;
  }

  // Whether the table has changed since `told`.
  bool has_changed(const Told& told) const {
    const Address array = slots();
    return word(array, 1) != told.at || word(array, number(told.at) + 1) != told.line_slot;
  }

 private:
  Address slots() const {  // they do not move
    if (slots_ == 0) slots_ = read_ref(memory_, layout_, table_ + layout_.tab_array).value_or(0);
    return slots_;
  }
  std::uint64_t word(Address array, std::uint64_t i) const {
    return memory_.get<std::uint64_t>(array + 8 * i).value_or(0);
  }
  // lj_obj.h, LJ_DUALNUM: integers may have a type of their own, ~13.
  std::uint64_t number(std::uint64_t word) const {
    constexpr std::uint64_t integer = ~std::uint64_t{13};
    if (layout_.gc64 ? word >> 47 == (integer & 0x1ffff) : word >> 32 == (integer & 0xffffffff))
      return static_cast<std::uint32_t>(word);
    const double value = std::bit_cast<double>(word);
    return value >= 0 && value < 1e15 ? static_cast<std::uint64_t>(value) : 0;
  }

  const Memory& memory_;
  const LuajitLayout& layout_;
  Address table_;
  std::uint64_t stride_;
  mutable Address slots_ = 0;
};

struct Pairs {
  std::set<std::pair<std::string, std::string>> seen;
  bool possible(const std::string& caller, const std::string& callee) const {
    return seen.contains({caller, callee}) || seen.contains({"*", callee});
  }
};

Pairs record_pairs(const LuajitTarget& target) {
  std::string path = std::filesystem::temp_directory_path() / "luaspy-pairs-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return {};
  close(file);
  Child(words_of(target, {"pairs", path})).wait();
  Pairs pairs;
  std::ifstream lines(path);
  const auto without_sign = [](const std::string& function) {
    return function.starts_with('@') || function.starts_with('=') ? function.substr(1) : function;
  };
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" -> ");
    if (arrow != std::string::npos)
      pairs.seen.emplace(without_sign(line.substr(0, arrow)), without_sign(line.substr(arrow + 4)));
  }
  unlink(path.c_str());
  return pairs;
}

struct Figures {
  std::int64_t samples = 0, failed_stops = 0, untold = 0, looks_again = 0;
  std::int64_t state_known = 0, wrong = 0, cold_wrong = 0, undecided = 0, not_current = 0;  // L
  std::int64_t decoded = 0, innermost_dropped = 0, dropped = 0, broken = 0, unusable = 0;
  std::int64_t pairs = 0, impossible = 0;
  std::int64_t incomplete = 0, mismatch = 0, not_joined = 0;
  std::int64_t trace_frames = 0, adjusted = 0;  // native frames of traces; those where spadjust gives the same C frame
  struct Where {
    std::int64_t samples = 0, right = 0, edge = 0, near = 0, wrong = 0;  // whole stacks; near: in machine code, all
                                                                         // except inlined functions
    std::int64_t function = 0, lines = 0, line = 0;                      // of the innermost: right
    std::int64_t callers = 0, caller_lines = 0;
  } interpreter, trace;
};

// Whether the VM was stopped, not machine code.
bool in_vm_now(const Pieces& pieces, bool on_trace) {
  return pieces.reader().native_code().vm_at(pieces.registers().pc()) != nullptr || on_trace;
}
Address running(const std::vector<ActiveState>& active) { return active.empty() ? 0 : active[0].L; }

class Judge {
 public:
  Judge(Target& target, const LuajitLayout& layout, const Table& table, const Pairs& pairs, bool verbose)
      : target_(target),
        pieces_(target),
        shadow_(target.memory(), layout, table.address, table.stride),
        finalizer_(table.finalizer),
        thrower_(table.thrower),
        pairs_(pairs),
        verbose_(verbose) {}

  const Figures& figures() const { return figures_; }
  const Agreement& agreement() const { return pieces_.agreement(); }
  const std::map<std::string, int>& causes() const { return causes_; }
  void forget_figures() { figures_ = {}, causes_.clear(); }

  void sample(pid_t tid) {
    Target::Stop stop(target_, tid);
    if (stop.outcome() != Target::Stop::Outcome::stopped || !pieces_.read(stop.registers())) {
      ++figures_.failed_stops;
      return;
    }
    const Told now = shadow_.read();
    const Found found = read_found();
    const bool agrees = !now.good || names(now, found, pieces_.cold_active);
    const int steps = !agrees                              ? steps_to_other_thread
                      : in_vm_now(pieces_, found.on_trace) ? steps_to_telling
                                                           : steps_elsewhere;
    const Told soon = step_on(tid, now, steps);
    stop.resume();
    if (!pieces_.finish()) {
      ++figures_.looks_again;
      return;
    }
    judge(now, soon, found);
  }

 private:
  // What a global_State says of its threads, read while the target is stopped.
  struct Found {
    Address main = 0;
    Address current = 0;     // the thread that runs; 0: not said. LuaJIT 2.0 says it of machine code only.
    Address finalizers = 0;  // the thread that runs finalizers; 0: each thread runs those of its own
    bool on_trace = false;
  };
  Found read_found() {
    if (!pieces_.cold_active.empty()) known_ = pieces_.cold_active[0];
    if (known_.lua == nullptr) return {};
    const TraceBase now = read_trace_base(target_.memory(), *luajit_layout(*known_.lua), known_.G);
    return {known_.lua->main_thread(target_.memory(), known_.G), now.L,
            known_.lua->finalizer_thread(target_.memory(), known_.G), now.base != 0};
  }

  // What the table says after its next change; not good if that takes more than `most` instructions.
  Told step_on(pid_t tid, const Told& now, int most) const {
    for (int i = 0; i < most && step(tid); ++i) {
      if (shadow_.has_changed(now)) return shadow_.read();
    }
    return {};
  }

  // Does the table name the thread that luaspy names? A finalizer uses the part of the thread that runs
  // it (lj_gc.c, from 2025-11 on, gives it a thread of its own).
  static bool names(const Told& told, const Found& found, const std::vector<ActiveState>& active) {
    const bool finalizes = active.size() > 1 && active[0].L == found.finalizers;
    const Address L = finalizes ? active[1].L : running(active);
    return told.good && L != 0 && L == (told.on_main ? found.main : told.thread);
  }

  static bool step(pid_t tid) {
    int status = 0;
    return ptrace(PTRACE_SINGLESTEP, tid, 0, 0) == 0 && waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
           WSTOPSIG(status) == SIGTRAP;
  }

  void judge(const Told& now, const Told& soon, const Found& found) {
    ++figures_.samples;
    judge_state(now, soon, found);
    judge_quality();
    judge_pairs();
    if (now.good) judge_stack(now, soon);
    else ++figures_.untold;
  }

  void judge_state(const Told& now, const Told& soon, const Found& found) {
    const Address said = running(pieces_.active()), cold = running(pieces_.cold_active);
    if (found.current != 0 && found.current != said)
      ++figures_.not_current, report("not cur_L", fmt::format("said {:#x}, cur_L {:#x}", said, found.current));
    if (!now.good) return;
    const auto is_right = [&](const std::vector<ActiveState>& active) {
      return names(now, found, active) || names(soon, found, active);
    };
    const std::string told = fmt::format("said {:#x}, cold {:#x}, cur_L {:#x}, told {:#x}, then {:#x}", said, cold,
                                         found.current, now.on_main ? found.main : now.thread,
                                         soon.on_main ? found.main : soon.thread);
    if (!soon.good && said != 0 && said == cold && !is_right(pieces_.active())) {
      ++figures_.undecided, report("L not decided", told);
      return;
    }
    ++figures_.state_known;
    if (!is_right(pieces_.active())) ++figures_.wrong, report("wrong L", told);
    if (!is_right(pieces_.cold_active)) ++figures_.cold_wrong, report("wrong L, cold", told);
  }

  void judge_quality() {
    const Quality& quality = pieces_.sample.quality;
    const bool unusable = quality.lua_unusable != 0 || quality.with_lua == 0;
    figures_.innermost_dropped += quality.half_built != 0;
    figures_.dropped += quality.calls_dropped != 0;
    figures_.broken += quality.lua_broken != 0;
    figures_.unusable += unusable;
    figures_.decoded += !unusable && quality.half_built == 0 && quality.calls_dropped == 0 && quality.lua_broken == 0;
    figures_.incomplete += quality.native_complete == 0;
    figures_.mismatch += quality.fresh_mismatch != 0;
    figures_.not_joined += quality.not_joined != 0;
    judge_trace_frames();
    if (unusable) report("unusable", "");
    if (quality.half_built != 0) report("innermost dropped", "");
    if (quality.calls_dropped != 0) report("others dropped", "");
    if (quality.lua_broken != 0) report("broken", "");
    if (quality.native_complete == 0) report("native incomplete", "");
    if (quality.fresh_mismatch != 0) report("fresh mismatch", frames_and_calls());
    if (quality.not_joined != 0) report("not joined", "");
  }

  // lj_asm_x86.h, asm_head and asm_tail: a trace's frame is spadjust bytes and two words on top of
  // the VM's, except at the very start and end of the trace.
  void judge_trace_frames() {
    if (pieces_.active().empty()) return;
    const ActiveState activation = pieces_.active()[0];
    const LuajitLayout& layout = *luajit_layout(*activation.lua);
    constexpr Address words = 16, frame_size = 80;
    for (const NativeFrame& native : pieces_.natives()) {
      if (!native.in_trace) continue;
      const Trace* const trace = traces_.find(layout, activation.G, native.lookup);
      if (trace == nullptr) continue;
      const auto spadjust = target_.memory().get<std::uint16_t>(trace->object + layout.T_spadjust).value_or(0);
      const Address cfa = native.sp + spadjust + words + frame_size;
      ++figures_.trace_frames;
      figures_.adjusted += native.cfa == cfa || native.cfa == cfa + words;  // built with LUAJIT_NO_UNWIND: two more
                                                                            // registers
    }
  }

  std::string frames_and_calls() const {
    const StackReader& reader = pieces_.reader();
    const std::vector<Segment> segments = segments_of(pieces_.joined().from.lua);
    const Merged merged = merge(pieces_.natives(), segments, reader.native_code(), {});
    std::string text = fmt::format("{} frames, {} calls:", merged.execute_frames, merged.fresh_calls);
    for (const NativeFrame& native : pieces_.natives()) {
      if (reader.native_code().executes_lua(native)) text += fmt::format(" {:#x}-{:#x}", native.sp, native.cfa);
    }
    for (const Segment& segment : segments) {
      text += fmt::format("; state to {:#x}:", segment.boundary);
      for (const LuaCall& call : segment.walk->calls) {
        if (call.fresh) text += fmt::format(" {}{:#x}", call.is_lua() ? "" : "C ", call.owner);
      }
    }
    return text;
  }

  static std::string name_for_pair(const Frame& frame) {
    if (frame.kind == Frame::Kind::c) return "[C]";
    if (frame.kind != Frame::Kind::lua || frame.file == "?") return {};
    return frame.file.starts_with("[builtin") ? frame.file : fmt::format("{}:{}", frame.file, frame.line_defined);
  }

  void judge_pairs() {
    std::string caller;
    for (const Frame& frame : pieces_.stack()) {
      if (frame.kind == Frame::Kind::native) continue;
      const std::string callee = name_for_pair(frame);
      if (!caller.empty() && !callee.empty()) {
        ++figures_.pairs;
        if (!pairs_.possible(caller, callee))
          ++figures_.impossible, report("impossible pair", caller + " -> " + callee);
      }
      caller = callee;
    }
  }

  struct Said {
    std::vector<Place> outer, inner;  // outermost first; calls that were left out are between them
    bool cut = false;
    std::vector<Place>& last() { return inner.empty() ? outer : inner; }
    const Place* innermost() const { return !inner.empty() ? &inner.back() : !outer.empty() ? &outer.back() : nullptr; }
    bool drop() {
      if (last().empty()) return false;
      last().pop_back();
      return true;
    }
  };

  Said said() const {
    Said said;
    for (const Frame& frame : pieces_.stack()) {
      if (frame.kind == Frame::Kind::marker && frame.name.find("left out") != std::string::npos) said.cut = true;
      if (frame.kind != Frame::Kind::lua || frame.file.starts_with("[builtin")) continue;
      Place place{frame.line_defined, frame.line};
      if (frame.file == "loaded") place.function += loaded_offset, place.line += loaded_offset;
      else if (frame.file != "shadow.lua") place.function = collected;
      (said.cut ? said.inner : said.outer).push_back(place);
    }
    return said;
  }

  // Whether they are the same functions, ignoring the innermost `missing` ones of `told`.
  static bool matches(const Said& said, const std::vector<Place>& told, std::size_t missing) {
    if (missing > told.size()) return false;
    const auto all = std::span(told).first(told.size() - missing);
    if (said.cut ? all.size() < said.outer.size() + said.inner.size() : all.size() != said.outer.size()) return false;
    return std::ranges::equal(said.outer, all.first(said.outer.size()), same_function) &&
           std::ranges::equal(said.inner, all.last(said.inner.size()), same_function);
  }

  std::size_t inlined_calls() const {
    const std::vector<Segment> segments = segments_of(pieces_.joined().from.lua);
    std::size_t count = 0;
    if (!segments.empty()) {
      for (const LuaCall& call : segments[0].walk->calls) {
        if (call.func != 0) break;
        count += call.is_lua();
      }
    }
    return count;
  }

  void judge_stack(const Told& now, const Told& soon) {
    const bool on_trace = pieces_.joined().from.lua.on_trace();
    Figures::Where& where = on_trace ? figures_.trace : figures_.interpreter;
    ++where.samples;
    const Said all = said();
    const Place* const innermost = all.innermost();
    const Told* right = nullptr;
    for (const Told* told : {&now, &soon}) {
      if (told->good && right == nullptr && matches(all, told->calls, 0)) right = told;
    }
    if (right != nullptr) {
      ++where.right;
      ++where.function;
      judge_lines(where, all, now, soon, *right);
      return;
    }
    // A function was left and has not returned yet; or one was entered and has not recorded that.
    Said without = all;
    const bool has_more = innermost != nullptr && without.drop() && matches(without, now.calls, 0);
    if (has_more && same_function(*innermost, now.left)) {
      ++where.edge;
      ++where.function;
      report("edge, left", text(all, now));
      return;
    }
    const std::string texts = text(all, now);
    // An error removes calls one after the other (lj_err.c, err_unwind), but the table only changes
    // when it is caught.
    const bool unwinds = !now.calls.empty() && now.calls.back().function == thrower_;
    for (std::size_t missing = 1; unwinds && missing <= 3; ++missing) {
      if (!matches(all, now.calls, missing)) continue;
      ++where.edge;
      report("edge, error", texts);
      return;
    }
    // The function that ran before a finalizer may have been about to record something.
    const auto finalizer = std::ranges::find(all.outer, finalizer_, &Place::function);
    if (finalizer != all.outer.end() && finalizer != all.outer.begin() && !all.cut) {
      Said without_one = all;
      without_one.outer.erase(without_one.outer.begin() + (finalizer - all.outer.begin()) - 1);
      bool fits = matches(without_one, now.calls, 0) || matches(without_one, soon.calls, 0);
      fits |= without_one.drop() && matches(without_one, now.calls, 0);
      if (fits) {
        ++where.edge;
        report("edge, finalizer", texts);
        return;
      }
    }
    if (on_trace) {
      if (has_more && inlined_calls() == 0) {
        ++where.edge;  // the trace begins where a function does
        report("edge, trace", texts);
        return;
      }
      if (innermost != nullptr && !now.calls.empty() && same_function(*innermost, now.calls.back())) ++where.function;
      // All functions except those that the trace has inlined.
      Said fewer = all;
      for (std::size_t extra = 0; extra <= inlined_calls(); ++extra) {
        for (std::size_t missing = 0; missing <= 10; ++missing) {
          if (!matches(fewer, now.calls, missing)) continue;
          ++where.near;
          report("trace, near", fmt::format("{} inlined too many, {} too few; {}", extra, missing, texts));
          return;
        }
        if (!fewer.drop()) break;
      }
    } else if (has_more) {
      ++where.edge;  // its pair with its caller is judged as all pairs are
      report("edge", texts);
      return;
    }
    ++where.wrong;
    report(on_trace ? "trace, wrong" : "interpreter, wrong", texts);
  }

  void judge_lines(Figures::Where& where, const Said& all, const Told& now, const Told& soon, const Told& right) {
    const std::vector<Place>& calls = right.calls;
    for (std::size_t i = 0; i + 1 < all.outer.size() && !all.cut; ++i) {
      if (all.outer[i].function == collected) continue;
      ++where.callers;
      if (all.outer[i].line == calls[i].line) ++where.caller_lines;
      else report("caller's line", fmt::format("frame {}: {} is {}", i, all.outer[i].line, text(all, right)));
    }
    const Place* const innermost = all.innermost();
    // In a deep recursion a function that is being entered looks like its caller.
    if (innermost == nullptr || innermost->function == collected || all.cut) return;
    ++where.lines;
    const auto line_of = [&](const Told& told) {
      return told.good && matches(all, told.calls, 0) && !told.calls.empty() ? told.calls.back().line : -1;
    };
    if (innermost->line == line_of(now) || innermost->line == line_of(soon)) ++where.line;
    else
      report(&where == &figures_.trace ? "trace, line" : "interpreter, line",
             fmt::format("said {}, is {} or {}", innermost->line, line_of(now), line_of(soon)));
  }

  static std::string text(const Said& said, const Told& told) {
    std::string text = "said";
    const auto add = [&](std::span<const Place> places) {
      if (places.size() > 8) text += " …", places = places.last(8);
      for (const Place& place : places) text += fmt::format(" {}@{}", place.function, place.line);
    };
    add(said.outer);
    if (said.cut) text += " [cut]", add(said.inner);
    text += "; is";
    add(told.calls);
    text += fmt::format("; left {}@{}", told.left.function, told.left.line);
    if (!said.cut && told.calls.size() > 8)
      text += fmt::format("; {} of {} calls", said.outer.size(), told.calls.size());
    if (said.cut)
      text += fmt::format("; {} and {} of {} calls", said.outer.size(), said.inner.size(), told.calls.size());
    return text;
  }

  void report(const std::string& cause, const std::string& text) {
    const StackReader& reader = pieces_.reader();
    std::string where;
    const auto describe = [&](const NativeFrame& native) {
      std::string name = reader.native_code().describe(native).name;
      if (const VmCode* const vm = reader.native_code().vm_at(native.lookup))
        name = fmt::format("vm+{:#x}", native.pc - vm->start);
      else if (native.function != 0) name += fmt::format("+{:#x}", native.pc - native.function);
      return name;
    };
    if (!pieces_.natives().empty()) {
      const NativeFrame& native = pieces_.natives()[0];
      where = reader.native_code().vm_at(native.lookup) != nullptr ? "in the VM"
              : native.in_trace                                    ? "in machine code"
                                                                   : reader.native_code().describe(native).name;
    }
    ++causes_[fmt::format("{}: {}, {}", cause, name(pieces_.sample.vm_state), where)];
    if (!verbose_) return;
    std::string natives;
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces_.natives().size(), 7); ++i)
      natives += ' ' + describe(pieces_.natives()[i]);
    fmt::print("    {}: {} ({}) in{}\n", cause, text, name(pieces_.sample.vm_state), natives);
  }

  Target& target_;
  Pieces pieces_;
  ActiveState known_;
  Traces traces_{target_.memory()};
  Shadow shadow_;
  int finalizer_, thrower_;
  const Pairs& pairs_;
  bool verbose_;
  Figures figures_;
  std::map<std::string, int> causes_;
};

// How many of n may be wrong if a share of `allowed` is wrong: what chance gives in 99 of 100 runs.
std::int64_t tolerance(std::int64_t n, double allowed) {
  const double mean = static_cast<double>(n) * allowed;
  double term = std::exp(-mean), sum = term;
  std::int64_t k = 0;
  while (sum < 0.99) sum += term *= mean / static_cast<double>(++k);
  return k;
}

double percent(std::int64_t part, std::int64_t of) {
  return of != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(of) : 0;
}

bool passes(const Figures& figures, bool jit) {
  struct Limit {
    std::int64_t wrong, of;
    double allowed;
    const char* what;
  };
  const Limit limits[] = {
      {figures.wrong, figures.state_known, 0.001, "running L"},
      {figures.cold_wrong, figures.state_known, 0.001, "running L, cold"},
      {figures.undecided, figures.samples, 0.002, "running L, decided"},
      {figures.samples - figures.decoded, figures.samples, jit ? 0.004 : 0.006, "stacks decoded"},
      {figures.impossible, figures.pairs, 0, "impossible pairs"},
      {figures.incomplete, figures.samples, 0.001, "native part"},
      {figures.trace_frames - figures.adjusted, figures.trace_frames, 0.02, "frames of traces where spadjust has them"},
      {figures.failed_stops + figures.untold, figures.samples, 0.01, "stops that tell nothing"},
      {figures.looks_again, figures.samples, 0.05, "wrong predictions"}};
  bool good = figures.samples >= fewest_samples && figures.pairs != 0;
  if (!good) fmt::print("  FAILED: too few samples\n");
  for (const Limit& limit : limits) {
    if (limit.wrong <= tolerance(limit.of, limit.allowed)) continue;
    fmt::print("  FAILED: {}: {} of {} wrong\n", limit.what, limit.wrong, limit.of);
    good = false;
  }
  return good;
}

void print_head() {
  fmt::print(
      "{:<38} {:>6} {:>7} {:>7} {:>5} {:>5} {:>7} {:>5} {:>5} {:>7} {:>3} {:>7} {:>6} {:>4} {:>6} | {:>6} {:>6} {:>5} "
      "{:>5} "
      "{:>6} {:>6} | {:>6} {:>6} {:>6} {:>5} {:>5} {:>6} {:>6}\n",
      "", "stops", "L %", "cold %", "undec", "cur_L", "deco %", "inner", "other", "pairs", "bad", "nativ %", "fresh",
      "join", "spadj%", "interp", "whole%", "edge%", "wrong", "line%", "callr%", "trace", "whole%", "near%", "wrong",
      "func%", "line%", "callr%");
}

void print(const std::string& name, const Figures& f) {
  const Figures::Where &i = f.interpreter, &t = f.trace;
  fmt::print(
      "{:<38} {:>6} {:>7.3f} {:>7.3f} {:>5} {:>5} {:>7.3f} {:>5} {:>5} {:>7} {:>3} {:>7.3f} {:>6} {:>4} {:>6.2f} | "
      "{:>6} "
      "{:>6.2f} {:>5.2f} {:>5} {:>6.2f} {:>6.2f} | {:>6} {:>6.2f} {:>6.2f} {:>5} {:>5.1f} {:>6.2f} {:>6.2f}\n",
      name, f.samples, 100 - percent(f.wrong, f.state_known), 100 - percent(f.cold_wrong, f.state_known), f.undecided,
      f.not_current, percent(f.decoded, f.samples), f.innermost_dropped, f.dropped, f.pairs, f.impossible,
      100 - percent(f.incomplete, f.samples), f.mismatch, f.not_joined, percent(f.adjusted, f.trace_frames), i.samples,
      percent(i.right + i.edge, i.samples), percent(i.edge, i.samples), i.wrong, percent(i.line, i.lines),
      percent(i.caller_lines, i.callers), t.samples, percent(t.right + t.edge, t.samples), percent(t.near, t.samples),
      t.wrong, percent(t.function, t.samples), percent(t.line, t.lines), percent(t.caller_lines, t.callers));
  std::fflush(stdout);
}

bool measure(const LuajitTarget& subject, const Pairs& pairs, bool jit, int samples, system::Clock::time_point end,
             bool verbose) {
  Child program(words_of(subject, {jit ? "on" : "off"}));
  Result<Process> process = Process::open(program.pid());
  Table table;
  if (!program.ready() || !process || !read_table(program.said(), table)) {
    fmt::print("{}: does not start\n", subject.name);
    return false;
  }
  Target target(std::move(*process), std::chrono::milliseconds(2000));
  std::minstd_rand random(1);
  const auto pause = [&] {
    system::sleep_until(system::Clock::now() + std::chrono::microseconds(random() % longest_pause_us));
  };
  Judge judge(target, subject.gc64 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32, table, pairs, verbose);
  const auto is_enough = [&] {
    const std::int64_t taken = judge.figures().samples;
    return taken >= samples || (taken >= fewest_samples && system::Clock::now() >= end);
  };
  for (int tries = 0; tries < 2 * samples && !is_enough(); ++tries) pause(), judge.sample(program.pid());
  print(subject.name + (jit ? "" : " -joff"), judge.figures());
  if (verbose) {
    for (const auto& [cause, times] : judge.causes()) fmt::print("  {:>6} {}\n", times, cause);
  }
  const bool agrees = judge.agreement().report();
  return passes(judge.figures(), jit) && agrees;
}

int run(const std::vector<std::string>& words) {
  int samples = 2000, seconds = 0;
  bool verbose = false, good = true;
  std::vector<bool> modes = {true, false};
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--samples" && i + 1 < words.size()) samples = std::stoi(words[++i]);
    else if (words[i] == "--seconds" && i + 1 < words.size()) seconds = std::stoi(words[++i]);
    else if (words[i] == "--jit" && i + 1 < words.size()) modes = {words[++i] == "on"};
    else if (words[i] == "--verbose") verbose = true;
    else rest.push_back(words[i]);
  }
  std::vector<LuajitTarget> targets = rest.empty() ? std::vector<LuajitTarget>() : read_targets(rest[0]);
  if (targets.empty())
    return fmt::print(
               stderr,
               "usage: luajit_accuracy [--samples N] [--seconds N] [--jit on|off] [--verbose] TARGETS [NAME...]\n"),
           2;
  if (rest.size() > 1)
    std::erase_if(targets, [&](const LuajitTarget& target) {
      return std::find(rest.begin() + 1, rest.end(), target.name) == rest.end();
    });
  if (rest.size() > 1 && targets.size() != rest.size() - 1)
    return fmt::print(stderr, "luajit_accuracy: there are not all of these targets\n"), 2;
  print_head();
  const system::Clock::time_point start = system::Clock::now();
  auto to_measure = static_cast<std::int64_t>(targets.size() * modes.size());
  for (const LuajitTarget& target : targets) {
    const Pairs pairs = record_pairs(target);
    for (const bool jit : modes) {
      system::Clock::time_point end = system::Clock::time_point::max();
      if (seconds != 0)
        end = system::Clock::now() + (start + std::chrono::seconds(seconds) - system::Clock::now()) / to_measure;
      good &= measure(target, pairs, jit, samples, end, verbose);
      --to_measure;
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace luaspy

int main(int argc, char** argv) { return luaspy::run({argv + 1, argv + argc}); }
