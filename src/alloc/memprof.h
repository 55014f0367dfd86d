#pragma once
// The text that the parser of Tarantool's memory profiler prints (tools/memprof/humanize.lua of
// tarantool/luajit; described in Tarantool's manual, "LuaJIT memory profiler"), so that what reads
// the one reads the other:
//
//   ALLOCATIONS
//   @app.lua:14: 10000 events<tab>+50240518 bytes<tab>-0 bytes
//
//   REALLOCATIONS
//   @app.lua:13: 13 events<tab>+262216 bytes<tab>-131160 bytes
//
//   DEALLOCATIONS
//
//   HEAP SUMMARY:
//   @app.lua:14 holds 50248326 bytes: 10010 allocs, 10 frees
//
// There it is counted, here it is estimated from samples. Who frees is not sampled, so the section of
// deallocations has no lines, and no line says what it overrides.

#include <map>
#include <string>

#include "base/frame.h"

namespace luaspy {

struct AllocationSample;
struct Format;

// Only alloc writes it: a profile does not say what was a new block.
extern const Format memprof_format;

class Memprof {
 public:
  struct Amount {
    double events = 0, allocated = 0, freed = 0;  // bytes; freed: the old sizes of blocks that grew
  };
  struct Alive {
    double events = 0, bytes = 0;
    double gone = 0;  // events; of others it is not known
  };
  struct Line {
    Amount allocations, reallocations;
    Alive alive;  // of these, at the end; if knows_alive
  };

  // Where an allocation is counted: the line of the innermost Lua function, as of what Tarantool's
  // built-in functions allocate. "INTERNAL": there is none.
  static std::string location(const Stack& stack);

  void add(const std::string& location, const AllocationSample& allocation);
  // So much of what was added at a location was still alive at the end, or gone. Without a call, there is no
  // heap summary: it would say that nothing was.
  void add_alive(const std::string& location, const Alive& alive);

  std::string text() const;

 private:
  std::map<std::string, Line> lines_;  // by location
  bool knows_alive_ = false;
};

}  // namespace luaspy
