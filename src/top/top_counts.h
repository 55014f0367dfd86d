#pragma once
// What top shows, as a plain value: time by function, line, caller and thread. TopTable collects
// it; the drawing side has a copy, which does not change while sampling continues.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_use.h"
#include "base/frame.h"
#include "base/sample.h"
#include "profile/heap_track.h"

namespace luaspy {

struct TopCounts {
  using Function = std::uint32_t;  // index into functions
  using Line = std::uint32_t;      // index into lines
  using Thread = std::uint32_t;    // index into threads

  // ns: within the window, which ends now, and since the beginning.
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
  std::vector<ThreadName> threads;  // that were sampled; if there are too many, the last is of all further ones
  std::vector<Entry> entries;       // entries[0] collects what did not fit

  Span elapsed;
  Span ticks;                                   // a number
  Span idle;                                    // no thread ran, or could have run
  Span waiting;                                 // sum over all threads: could have run, but had no CPU
  std::array<Span, activity_count> activity{};  // what running threads are doing
  Span stopped;                                 // some thread of the target stood still
  LossCounts losses{};
  Quality quality{};  // since the beginning, of `samples` samples
  std::int64_t samples = 0;
  std::int64_t asleep = 0, looks_waiting = 0;  // looks since the beginning that found a thread asleep, or without a CPU
  std::size_t threads_now = 0;                 // seen in the last tick
  Span ran;                                    // a number of threads, of all, whatever has a row: those that ran
  bool luajit = false;                         // the VM has machine code and a compiler, and reports its state
  bool sees_collector = false;  // whether the collector runs can be known: LuaJIT reports it; for PUC Lua, it has been
                                // seen at least once
};

// Of all Luas together.
struct TopHeap {
  std::size_t states = 0;
  HeapSummary recent, all;  // in the window, and since the beginning
};

// What is known about the target in addition to the samples.
struct TopTarget {
  std::string command;
  int pid = 0;
  std::vector<std::string> luas;  // "Lua 5.4.3-5.4.9"
  bool lua_mapped = false;        // as Metadata::lua_mapped
  std::size_t processes = 1;
  double rate = 0;    // as requested, Hz
  double window = 0;  // s
  bool ended = false;
  CpuUse cpu;                       // since the beginning, or the reset
  std::int64_t sampled_cpu_ns = 0;  // of that, as LoopCounts
  std::optional<TopHeap> heap;      // nullopt: none was seen
  std::string still;                // why none of its threads can run (why_still()); "" if one can run, or merely waits
  std::string output;               // the file to which a launched command's output is diverted; "" if it is not
};

// A line of the table.
struct TopRow {
  static constexpr std::uint32_t all_threads = ~std::uint32_t{0};
  TopCounts::Function function = 0;
  int line = 0;  // 0: the function as a whole
  bool is_near = false;
  TopCounts::Thread thread = all_threads;
  int pid = 0;  // one process; 0: all
  TopCounts::Times times;

  bool is_same(const TopRow& other) const {
    return function == other.function && line == other.line && is_near == other.is_near && thread == other.thread &&
           pid == other.pid;
  }
};

struct TopGrouping {
  bool lines = false, threads = false, processes = false;  // a row for each; at most one of the latter two
};
// In an arbitrary but stable order.
std::vector<TopRow> top_rows(const TopCounts& counts, TopGrouping grouping);

// The callers and callees of a function; their times.total is the time with that call on the stack.
struct TopRelations {
  TopRow function;
  std::vector<TopRow> callers, callees;
};
TopRelations top_relations(const TopCounts& counts, TopCounts::Function function);

// Largest total first: by the recent time, then by the time since the beginning.
void sort_by_total(std::vector<TopRow>& rows);

// "discount", " (demo/orders.lua:11)"
Frame frame_of(const TopCounts& counts, const TopRow& row);

}  // namespace luaspy
