#pragma once
// Compares each stack with the one an instruction before, and with what the script can do.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "script.h"
#include "stack/stack_reader.h"

namespace luaspy::steps {

// A Lua or C function of a stack, as it was shown.
struct Shown {
  Frame::Kind kind = Frame::Kind::lua;
  bool tail = false;  // "(...tail calls...)" precedes it
  bool near = false;  // its line may be a neighbouring one: in machine code
  bool on_trace = false;
  std::string name, file;
  int line_defined = 0, line = 0;
  Address L = 0, entry = 0;  // its coroutine; C: its code

  bool same_function(const Shown& other) const {
    return kind == other.kind && line_defined == other.line_defined && file == other.file && L == other.L &&
           entry == other.entry;
  }
  bool operator==(const Shown&) const = default;
};
using ShownStack = std::vector<Shown>;  // outermost first

// The result of a look at one instant.
struct Look {
  ShownStack stack;
  VmState vm_state = VmState::none;
  bool lost = false;  // it reports that something is missing: "[unreadable]", not joined, no Lua call readable
  bool native_incomplete = false;
  bool native_between = false;  // there is a native frame between Lua's that does not belong to a library
};
// `finished`: of a look of `reader`; nullptr: nothing could be read.
Look look_of(StackReader& reader, const StackReader::Finished* finished, const std::string& library);

struct Counts {
  std::int64_t tried = 0, wrong = 0, impossible = 0, lost = 0, native_incomplete = 0, cold_differs = 0;
  std::map<std::string, std::int64_t> allowed;  // more than one frame at once, because the VM does so: by event
};

class Judge {
 public:
  Judge(const Scripts& scripts, bool is_luajit) : scripts_(scripts), is_luajit_(is_luajit) {}

  // Call after steps were left out: the next look has no predecessor.
  void forget() { has_previous_ = false, suspended_.clear(); }
  struct Verdict {
    std::string wrong, impossible;  // the reasons; empty if it is not
  };
  Verdict judge(const Look& look);
  const Counts& counts() const { return counts_; }
  Counts& counts() { return counts_; }

 private:
  std::string impossible(const Look& look) const;
  std::string impossible_pair(const Shown& caller, const Shown& callee) const;
  std::string step_from(const Look& before, const Look& now);
  bool is_tailed(const Shown& frame) const;
  bool allowed(const Look& before, const Look& now, std::size_t common);

  const Scripts& scripts_;
  bool is_luajit_;
  Counts counts_;
  bool has_previous_ = false, was_impossible_ = false;
  Look previous_;
  std::map<Address, ShownStack> suspended_;  // by coroutine: what it was doing when it yielded
};

std::string text_of(const ShownStack& stack);

}  // namespace luaspy::steps
