#pragma once
// Work that must not hold up luaspy: it is done by a copy of luaspy, a process of its own that has all memory as it was
// when the work began. The copy has one thread, and ends with the work.

#include <sys/types.h>

#include <functional>

namespace luaspy::system {

class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { (void)finish(); }

  // Whether the last work goes on.
  bool is_busy();
  // Call while it is not busy. If no process can be made, the work is done at once. `work` says whether it has
  // succeeded.
  void start(const std::function<bool()>& work);
  // Waits until the last work has ended. False: it has failed, or one before it, since this was asked last.
  bool finish();

 private:
  pid_t copy_ = 0;  // 0: there is none
  bool failed_ = false;
};

}  // namespace luaspy::system
