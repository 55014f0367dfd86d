#pragma once
// What top shows, as a plain value: time by function, by line and by caller, by thread. TopTable
// collects it; who draws it has a copy, which stays as it is while sampling goes on.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/sample.h"

namespace luaspy {

struct TopCounts {
  using Function = std::uint32_t;  // index into functions
  using Line = std::uint32_t;      // index into lines
  using Thread = std::uint32_t;    // index into threads

  // ns: of the window, which ends now, and since the beginning.
  struct Span {
    std::int64_t recent = 0, all = 0;
  };
  struct Times {
    Span own, total;  // total counts a function once, however often it is on a stack
  };

  struct FunctionLine {
    Function function = 0;
    int line = 0;
    bool is_near = false;  // as Frame::line_is_near
  };
  struct ThreadName {
    int pid = 0, tid = 0;
    std::string name;
    Span ran;
  };

  struct Entry {
    enum class Kind : std::uint8_t { none, function, line, call } kind = Kind::none;
    std::uint32_t a = 0;  // function, line: the thread. call: the caller
    std::uint32_t b = 0;  // the Function, the Line. call: the one that is called
    Times times;          // call: total only, and of all threads
  };

  std::vector<Frame> functions;  // line: 0
  std::vector<FunctionLine> lines;
  std::vector<ThreadName> threads;
  std::vector<Entry> entries;  // the first is none: of what there was no room for

  Span elapsed;
  Span ticks;                                   // a number
  Span idle;                                    // no thread ran, or could have
  Span waiting;                                 // of all threads together: could have run, and had no CPU
  std::array<Span, activity_count> activity{};  // what threads that run are doing
  Span stopped;                                 // some thread of the target stood still
  LossCounts losses{};
  Quality quality{};  // since the beginning, of `samples` samples
  std::int64_t samples = 0;
  std::size_t threads_now = 0;  // seen in the last tick
  bool luajit = false;          // there is machine code, a compiler, and a VM that says what it does
  bool sees_collector = false;  // it is known whether the collector runs: LuaJIT says so; PUC's has been seen
};

// What is known of the target beside the samples.
struct TopTarget {
  std::string command;
  int pid = 0;
  std::vector<std::string> luas;  // "Lua 5.4.3-5.4.9"
  bool lua_mapped = false;        // as About::lua_mapped
  std::size_t processes = 1;
  double rate = 0;    // asked for, Hz
  double window = 0;  // s
  bool ended = false;
  std::string still;   // why none of its threads can run (why_still()); "" if one can, or waits
  std::string output;  // the file that a launched command writes to meanwhile; "" if it is not needed
};

// A line of the table.
struct TopRow {
  static constexpr std::uint32_t all_threads = ~std::uint32_t{0};
  TopCounts::Function function = 0;
  int line = 0;  // 0: the function as a whole
  bool is_near = false;
  TopCounts::Thread thread = all_threads;
  TopCounts::Times times;

  bool is_same(const TopRow& other) const {
    return function == other.function && line == other.line && is_near == other.is_near && thread == other.thread;
  }
};

struct TopGrouping {
  bool lines = false, threads = false;
};
// In no particular order, but always the same.
std::vector<TopRow> top_rows(const TopCounts& counts, TopGrouping grouping);

// Who calls a function and whom it calls; of `times`, total is the time with that call on the
// stack.
struct TopRelations {
  TopRow function;
  std::vector<TopRow> callers, callees;
};
TopRelations top_relations(const TopCounts& counts, TopCounts::Function function);

// Most of it, first; of the two, what was recent counts first.
void sort_by_total(std::vector<TopRow>& rows);

// "discount", " (demo/orders.lua:11)"
Frame frame_of(const TopCounts& counts, const TopRow& row);

}  // namespace luaspy
