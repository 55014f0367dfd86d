#pragma once
// How a profile is to be written, whatever the format.

#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string_view>

#include "base/mode.h"
#include "profile/profile.h"

namespace luaspy {

// Values of a profile's samples beside their weights, by situation, with the names that pprof has for
// them (proto/profile.proto, ValueType).
struct SampleValues {
  std::string_view type, unit;
  std::map<Profile::ThreadSituation, std::int64_t> values;
};

struct WriteOptions {
  bool lines = false;        // Lua frames show the line being executed
  bool threads = false;      // folded, svg: a root frame for each thread
  Mode mode = Mode::merged;  // flamegraph: what the page shows at first, if the profile has more (ViewOptions::whole)
  // flamegraph: the raw recording of the profile, which the page then carries; empty: none.
  std::string_view recording = {};
  // pprof: samples are told apart by the numbers of their threads and processes, too. An engine would keep a series for
  // each that ever was.
  bool numbers = true;
  // pprof, otlp: added to the time at which it began, ns. Engines take two profiles of one time and one series for the
  // same.
  std::int64_t later_ns = 0;
  // pprof: the command lines of processes; else the names of their programs. Arguments may be secrets.
  bool arguments = true;
  // pprof: these, in place of the number of samples and their weight. What is missing is 0. The last
  // one is shown by default.
  std::span<const SampleValues> values = {};
};

}  // namespace luaspy
