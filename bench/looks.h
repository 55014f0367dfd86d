#pragma once
// The ways to look at a running thread that the bench compares. The stop of each is measured in the
// same way as that of Target::Stop: from before PTRACE_SEIZE to the return of PTRACE_DETACH.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attach/target.h"

namespace luaspy::bench {

class Look {
 public:
  virtual ~Look() = default;

  // Looks once at every running thread of the target, and prepares the next look. Returns the total
  // time that threads were stopped; 0 if none was.
  virtual std::chrono::nanoseconds look() = 0;

  std::int64_t lost() const { return lost_; }      // looks that ended without a stack
  std::int64_t frames() const { return frames_; }  // of the last look

 protected:
  std::int64_t lost_ = 0, frames_ = 0;
};

// bare: a stop. registers, again: a stop that reads the registers, and the same for an A/A
// comparison. luaspy: a whole sample, as record takes it. labelled: the same with four labels. libunwind: stock
// libunwind-ptrace, with its caches on. libdwfl: elfutils, as eu-stack does it, but attached all the time. nothing: no
// look at all. nullptr for another name. `pid` must be alive. `near`: the CPU that it runs on, if
// it is to be stopped from there; else -1.
std::unique_ptr<Look> make_look(std::string_view name, pid_t pid, int near);

// Pins the calling thread to a CPU.
void pin(int cpu);
// Lets the calling thread run on all CPUs that it was started with.
void unpin();

// Ends the program with a sentence on standard error if `holds` is false.
void require(bool holds, const std::string& otherwise);

}  // namespace luaspy::bench
