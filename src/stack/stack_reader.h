#pragma once
// From registers and memory to a stack, again and again: what is read while a thread stands still,
// and what becomes of it once it runs again (one_stack.h). It knows the target's mappings and
// files; which thread, when, and how it is stopped is the sampler's business.

#include <atomic>
#include <string>
#include <vector>

#include "base/sample.h"
#include "stack/one_stack.h"
#include "stack/snapshot.h"
#include "stack/stop_policy.h"
#include "stack/target_map.h"

namespace luaspy {

class StackReader {
 public:
  // `mapped` and `memory` have to outlive it.
  StackReader(const Mapped& mapped, const Memory& memory, MergeOptions merging, WalkLimits limits);

  // Looks for states of every Lua, whatever files are mapped.
  void try_all_rows();
  // Reads the target's mappings again and looks for Lua in what is new.
  void refresh();
  // The same, if a stack had addresses that no mapping explains. Call between ticks.
  void settle();

  // What a look at a thread needed: it makes the next one at the same thread one batch of reads.
  // Wrong, it costs time, no more.
  struct Prediction {
    Snapshot::Prediction memory;   // in the stop, beside the stack
    Snapshot::Prediction objects;  // after it
    std::vector<std::byte> stack;  // as it was then, and where it began
    Address stack_start = 0;
    Locator::Mentions mentions;
    Address stack_end = 0;  // behind the thread's outermost frame; 0: not known
    // What finish() goes on from: the stack, which is large, it takes anew.
    Prediction without_stack() const { return {memory, objects, {}, 0, {}, stack_end}; }
  };

  // What one stop has read.
  struct Look {
    explicit Look(const Memory& target) : snapshot(target), objects(target) {}
    Snapshot snapshot;
    Snapshot objects;  // what was read right after it, of what does not change while it lives
    Registers registers;
    Located located;
    bool cut = false;  // what lies above the predicted end of the stack was left out

    Locator::ThreadStack stack() const { return {snapshot.stack_start(), snapshot.stack()}; }
  };

  // In the stop: reads, and what decides what to read. The native stack, and what the walks of the
  // states that run need. False if there is no stack to read. `hurry`: somebody stands still
  // meanwhile; what is hardly ever wrong is then left for finish() to find out. What is read of
  // `look` from now on comes from its copy, after look.snapshot.close(). To be called by one thread
  // at a time, with lock() held if there are several.
  bool read(Look& look, const Registers& registers, const Prediction& predicted, bool hurry);
  // Right after the stop, closes the snapshot and reads what objects the stop has taken for known:
  // soon they may be others.
  void read_after(Look& look, const Prediction& predicted) const;

  // The same with a look of the reader's own, for who looks at one thread after the other.
  bool read(const Registers& registers, const Prediction& predicted, bool hurry) {
    return read(own_look_, registers, predicted, hurry);
  }
  void close() { own_look_.snapshot.close(); }
  bool finish(Sample& sample, Prediction& prediction) { return finish(own_look_, sample, prediction); }

  // Everything below is for one thread, which may be another than the one that reads.

  // The stack, outermost first, what the VM was doing, and how good it all is. `prediction` is
  // brought up to date. False: it was wrong, and what was read is worth nothing; look again, the
  // next looks do not rely on it. `look` has to live for as long as what is asked of this look.
  bool finish(Look& look, Sample& sample, Prediction& prediction);

  // Who reads in a stop must not wait for somebody who was taken off his CPU: lock_soon() tries for
  // some µs.
  bool lock_soon();
  void unlock() { locked_.clear(std::memory_order_release); }

  // What finish() has made of a look, but for its names.
  struct Unnamed {
    Snapshot snapshot;
    Joined joined;
  };
  // From now on finish() leaves the stack empty: naming it may take symbols of a big program, and
  // somebody stands still meanwhile.
  void name_later(bool later) { names_wait_ = later; }
  Unnamed take_unnamed();  // of the last finish(); once
  Stack name(const Unnamed& look) { return luaspy::name(lua_, native_code(), look.joined, look.snapshot); }

  // Is there a lua_State in the target, on a thread's stack or anywhere in its memory?
  bool has_state() const { return lua_.saw_state() || lua_.finds_state(space()); }
  // Looks for Luas that no thread's stack mentions in all of the target's writable memory.
  void find_states() { lua_.find_states(space()); }

  const LuaReader& lua() const { return lua_; }
  LuaReader& lua() { return lua_; }
  const std::vector<LuaImage>& images() const { return map_.detector().images(); }
  std::vector<std::string> searched() const { return map_.detector().searched(); }
  std::vector<Dialect> rows_to_try() const { return map_.detector().rows(); }
  const NativeCode& native_code() const { return map_.functions(); }
  const Modules& modules() const { return map_.modules(); }
  const AddressSpace& space() const { return map_.space(); }
  const Unwinder& unwinder() const { return map_.unwinder(); }

  // Of the look that was finished last.
  const Joined& joined() const { return joined_; }
  const std::vector<NativeFrame>& natives() const { return joined_.from.natives; }
  std::vector<Activation> active() const {
    return joined_.from.lua.active();
  }  // the states that run there, innermost first
  const Snapshot& snapshot() const { return look_->snapshot; }

 private:
  void lock();
  void predict(const Matched& matched, Prediction& prediction) const;

  MergeOptions merging_;
  TargetMap map_;
  Snapshot objects_;  // what is read while a look is finished
  LuaReader lua_;
  StopPolicy policy_;
  Look own_look_;
  Look* look_ = &own_look_;  // the one finished last
  Joined joined_;            // of it
  bool names_wait_ = false;
  std::atomic_flag locked_;  // read() uses the mappings, and what of lua_ it may
};

}  // namespace luaspy
