#pragma once
// Turns registers and memory into a stack, once per look: reads while a thread is stopped, and
// processes what was read once it runs again (one_stack.h). It knows the target's mappings and
// files. The sampler decides which thread is stopped, when and how.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sample.h"
#include "stack/host_requests.h"
#include "stack/label_values.h"
#include "stack/one_stack.h"
#include "stack/snapshot.h"
#include "stack/stack_namer.h"
#include "stack/stop_policy.h"
#include "stack/tarantool_fiber.h"
#include "stack/target_map.h"

namespace luaspy {

class StackReader {
 public:
  // `mapped`, `memory` and `stacks` must outlive it. `known`: shared with other processes; nullptr: its
  // own. Samples have the numbers of `stacks`.
  StackReader(const Mapped& mapped, const Memory& memory, StackTable& stacks, MergeOptions merging, WalkLimits limits,
              std::shared_ptr<KnownFiles> known = nullptr);

  // Samples have these labels from now on. `table` must outlive it. Call before the first look.
  void label(const LabelChoice& choice, LabelTable& table);

  // How requests are read, if samples are labelled with them; else nullptr. By the thread that calls finish().
  const HostRequests* requests() const { return shows_requests_ ? &*requests_ : nullptr; }

  // The name of the fiber that waits on a C stack with this anchor (locate.h), if samples are labelled with such; "":
  // it is none. `live`: the memory as it is now. By the thread that calls finish().
  std::string fiber_of(const Memory& live, Address anchor);

  // Looks for states of every Lua version, whatever files are mapped.
  void try_all_layouts();
  // Reads the target's mappings again and searches new ones for Lua.
  void refresh();
  // The same, but only if a stack had addresses that no mapping explains. Call between ticks.
  void refresh_if_stale();

  // Debug files have come, so that there are more symbols. Call between ticks.
  void read_symbols_again();

  // What a look at a thread needed. With it, the next look at the same thread reads everything in
  // one batch. A wrong prediction costs time, never correctness.
  struct Prediction {
    Snapshot::Prediction memory;   // in the stop, without the stack
    Snapshot::Prediction objects;  // right after the stop
    std::vector<std::byte> stack;  // as it was then; it began at stack_start
    Address stack_start = 0;
    Locator::Mentions mentions;
    // Above the outermost frames of the thread's stacks, ascending: fibers have one each.
    std::vector<Address> stack_ends;
    // What finish() needs of it: the stack is large, and finish() replaces it.
    Prediction without_stack() const { return {memory, objects, {}, 0, {}, stack_ends}; }
  };

  // What one stop read.
  struct Look {
    explicit Look(const Memory& target) : snapshot(target), objects(target) {}
    Snapshot snapshot;
    Snapshot objects;  // read right after the stop: objects that do not change while they live
    Registers registers;
    Located located;
    // The stack for the next prediction, copied by read_after(), where it is still in the cache of this CPU.
    std::vector<std::byte> stack_to_keep;
    // What is above was not read: it is above the predicted end of the stack, or too much.
    enum class Cut { none, at_end, guessed } cut = Cut::none;

    Locator::ThreadStack stack() const { return {snapshot.stack_start(), snapshot.stack()}; }
  };

  // What finish() makes of a look. It is the reader's, and stays as it is until its next finish(): to keep
  // it, move it.
  struct Finished {
    Sample sample;
    Joined joined;
    Look* look = nullptr;  // what was read: has to live as long as this is used

    const std::vector<NativeFrame>& natives() const { return joined.from.natives; }
    // The states that run on the thread, innermost first.
    std::vector<ActiveState> active() const { return joined.from.lua.active(); }
    const Snapshot& snapshot() const { return look->snapshot; }
  };

  // A whole look at a thread that stands still, whatever holds it, or at one of a core file: the way to
  // look for callers that look at one thread at a time and do not hurry. Until the thread runs again, more
  // can be read through snapshot(). nullptr: there is no stack to read.
  Finished* look(const Registers& registers);

  // The same in its parts.
  // In the stop: reads the native stack and what the walks of the running states need. False if
  // there is no stack to read. `hurry`: a thread is stopped meanwhile, so checks that hardly ever
  // fail are left to finish(). After look.snapshot.close(), everything read from `look` comes from
  // its copy. Only one thread may call this at a time; if several do, each takes the lock first
  // (lock_soon()).
  bool read(Look& look, const Registers& registers, const Prediction& predicted, bool hurry);
  // Right after the stop: closes the snapshot and reads the objects that the stop took for known.
  // They must be read soon, before the target replaces them.
  void read_after(Look& look, const Prediction& predicted) const;

  // Everything below is for one thread, which need not be the one that reads.

  // Makes a sample: the stack, what the VM was doing, the quality of both, and the heaps of the Luas
  // that run there. Updates `prediction`. nullptr: what was read is unusable because a prediction or an
  // assumption of the hurried look was wrong. Then look again; the next look does not rely on what was
  // wrong.
  Finished* finish(Look& look, Prediction& prediction);

  // A thread that reads in a stop must not wait for a thread that lost its CPU: lock_soon() gives
  // up after 100 µs.
  bool lock_soon();
  void unlock() { locked_.clear(std::memory_order_release); }

  // A look that is finished but for its names.
  struct Unnamed {
    Snapshot snapshot;
    Joined joined;
  };
  // From now on, finish() leaves the stack empty. Naming may read the symbols of a big program, and
  // a thread is stopped meanwhile.
  void name_later(bool later) { names_wait_ = later; }
  Unnamed move_unnamed(Finished& look) const;
  StackId name(const Unnamed& look) { return namer_.name(lua_, native_code(), look.joined, look.snapshot); }

  // Is there a lua_State in the target, on a thread's stack or anywhere in its memory?
  bool has_state() const { return lua_.saw_state() || lua_.finds_state(contents()); }
  // Searches all of the target's writable memory for Luas that no thread's stack mentions.
  void find_states() { lua_.find_states(contents()); }
  // The same in the memory that `some` has, all of it.
  void find_states(const AddressSpace& some) { lua_.find_states(some, ~std::uint64_t{0}); }

  StackTable& stacks() { return namer_.stacks(); }
  const LuaInspector& lua() const { return lua_; }
  LuaInspector& lua() { return lua_; }
  const std::vector<LuaImage>& images() const { return map_.detector().images(); }
  std::vector<std::string> searched() const { return map_.detector().searched(); }
  std::vector<const Lua*> layouts_to_try() const { return map_.detector().layouts(); }
  const NativeCode& native_code() const { return map_.functions(); }
  const Modules& modules() const { return map_.modules(); }
  const AddressSpace& space() const { return map_.space(); }
  AddressSpace contents() const { return map_.contents(); }
  const Unwinder& unwinder() const { return map_.unwinder(); }

 private:
  void lock();
  std::string fiber_of(const Memory& live, Address anchor, std::size_t window);  // bytes of the stack
  void add_labels(const Look& look, const Joined& joined, Sample& sample);
  std::vector<Load> loads_of(const char* function, Address argument) const;  // NginxRequests::LoadsOf

  MergeOptions merging_;
  const std::shared_ptr<KnownFiles> known_files_;
  TargetMap map_;
  Snapshot objects_;  // read while a look is finished
  LuaInspector lua_;
  StackNamer namer_;
  LabelTable* labels_ = nullptr;
  // Guarded by locked_, but for values() and value().
  std::optional<LabelValues> label_values_;
  std::optional<HostRequests> requests_;
  std::optional<TarantoolFibers> fibers_;
  bool shows_requests_ = false;  // not only their traces
  StopPolicy policy_;
  Look own_look_;      // of look()
  Finished finished_;  // the memory of one look serves the next
  bool names_wait_ = false;
  // Guards what read() uses: the mappings, and the parts of lua_ that it may use.
  std::atomic_flag locked_;
};

}  // namespace luaspy
