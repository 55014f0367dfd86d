#pragma once
// What luaspy did about threads of the target that precede it (attach/urgency.h), and how it is told.

#include <cstdint>
#include <string>

#include "attach/urgency.h"

namespace luaspy {

struct Precedence {
  Urgency highest;            // of the target's threads that precede luaspy's looks
  int stepped_to = 0;         // the real-time priority that luaspy's looks had, at most; 0: they did not step above any
  std::int64_t above_ns = 0;  // for how long they ran with it, on all CPUs
  bool from_elsewhere = false;  // some threads precede luaspy's looks: they came from another CPU
  bool shares_cpu = false;      // the same, but luaspy may use no other CPU than theirs
  bool may_move = false;        // they may use several CPUs, so that stepping above them would move them
  bool left_cpu = false;        // real-time threads took all of a CPU, so that luaspy could not look from there
};

// Sentences, each with a remedy where there is one; "": nothing precedes luaspy.
std::string precedence_text(const Precedence& precedence);

}  // namespace luaspy
