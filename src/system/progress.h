#pragma once
// How far long work is: one line on standard error that is rewritten, and erased at the end. Only on
// a terminal.

#include <chrono>
#include <string>

namespace luaspy::system {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  // Whether it is time to show something: there is a terminal, and nothing was shown for half a
  // second. Costs next to nothing.
  bool is_due();
  void show(const std::string& text);
  void clear();

 private:
  bool shown_, is_there_ = false;
  std::chrono::steady_clock::time_point next_;
};

// "[######..................] ": `part` of the whole, from 0 to 1.
std::string progress_bar(double part);

}  // namespace luaspy::system
