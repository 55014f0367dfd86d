#pragma once
// Collects what the sampling loop finds in a profile, and writes it to a raw recording at once if
// there is one.

#include <memory>
#include <optional>
#include <unordered_map>

#include "output/raw.h"
#include "profile/shape.h"
#include "sampling/sampling_loop.h"

namespace luaspy {

// What a recording says of a thread: its name and its process as they are now.
Profile::Thread profile_thread(Session& of, const luaspy::Thread& thread);

class Recording : public SampleSink {
 public:
  // `keeps_order`: see Profile.
  Recording(const Shape& shape, bool keeps_order);

  // From now on, everything is also written to `out`, including lines. `out` must outlive the
  // recording.
  void write_raw(std::ostream& out);

  void add(Session& of, const luaspy::Thread& thread, const Tick& tick, Sample& sample) override;
  // The same for a thread that need not exist any more.
  void add(const Profile::Thread& thread, const Tick& tick, const Sample& sample);
  void add_idle(Session& of, const luaspy::Thread& thread, const Tick& tick, std::int64_t count) override;
  void add_waiting(Session& of, const luaspy::Thread& thread, const Tick& tick, std::int64_t count) override;
  void add_loss(Loss loss, std::int64_t count) override;
  void end(Session& session, const Tick& tick) override;

  // Allocations can be added from now on, to a recording of time. They make a profile of bytes of
  // their own, in that shape, and are in the raw recording.
  void keep_allocations(const Shape& shape);
  void add_allocation(Session& of, const luaspy::Thread& thread, const RawWriter::Allocation& allocation,
                      const Sample& sample);
  const Profile* allocations() const { return allocated_ ? &allocated_->profile : nullptr; }

  const Profile& profile() const { return profile_; }
  void settle_names();
  // The text of a Lua file of the target.
  void add_source(const std::string& file, Profile::Source source);
  // Withdraws it.
  void drop_source(const std::string& file);
  // Sets what is known about the target by now, and flushes the raw recording.
  void tell(const About& about);

 protected:
  // A sample of a thread was counted, with a stack of the profile.
  virtual void counted(const Profile::Thread&, StackTable::StackId) {}

 private:
  struct KnownThread {
    std::uint32_t index = 0;  // in the profile
    LastSample last, last_allocation;
  };
  struct Allocated {
    Allocated(const Shape& shape, const StackTable& stacks) : shaper(shape, stacks, profile.stacks()) {}
    Profile profile{false};
    Shaper shaper;
  };

  std::uint32_t index_of(Session& of, const luaspy::Thread& thread);
  std::uint32_t add_thread(const Profile::Thread& thread);
  void count(std::uint32_t thread, const Tick& tick, const Sample& sample);
  // `stack` is the stack as it was found, `shaped` that of the profile.
  void count(std::uint32_t thread, const Tick& tick, const Sample& facts, StackTable::StackId stack,
             StackTable::StackId shaped);

  void count_heap(const Tick& tick, const HeapChange& change);

  StackTable stacks_;  // as found
  std::vector<Profile::Thread> threads_;
  std::vector<KnownThread> known_;  // parallel to threads_
  std::unordered_map<ThreadKey, std::uint32_t, ThreadKey::Hash> thread_index_;
  Profile profile_;
  Shaper shaper_;
  HeapChanges heaps_;
  std::unique_ptr<Allocated> allocated_;
  std::unique_ptr<RawWriter> raw_;
};

}  // namespace luaspy
