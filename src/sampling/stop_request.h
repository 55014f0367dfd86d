#pragma once
// A stop that a CPU sampler has asked for, and that comes later: which CPU sampler waits for it, and when the thread's
// session may be dropped meanwhile.

#include <atomic>

namespace luaspy {

class StopRequest {
 public:
  static constexpr int nobody = -1;
  int asked_by() const { return asked_by_; }  // the CPU of the CPU sampler that waits for the stop, or nobody

  // ---- For that sampler.
  void ask(int cpu) { asked_by_ = cpu; }
  // The thread has stopped, and is read now. False: its session is being dropped and must not be used.
  bool begin_look() {
    looks_ = true;
    if (!gone_) return true;
    looks_ = false;
    return false;
  }
  // Call after what was found has been handed over: from now on the session may be dropped, once that is taken.
  void end() {
    asked_by_ = nobody;
    looks_ = false;
  }

  // ---- For the thread that drops the session. No look begins after drop().
  void drop() { gone_ = true; }
  // Whether the session may be destroyed. A thread may take for ever to stop, so there is a limit to the wait for
  // that; there is none for a look that has begun, which uses the session.
  bool may_destroy(bool waited_enough) const { return !looks_ && (waited_enough || asked_by_ == nobody); }

 private:
  // Sequentially consistent: of begin_look() and drop(), at least one sees what the other one has stored.
  std::atomic<int> asked_by_ = nobody;
  std::atomic<bool> looks_ = false, gone_ = false;
};

}  // namespace luaspy
