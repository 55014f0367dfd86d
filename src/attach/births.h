#pragma once
// What happens to a process and to everything that it starts, as it happens: new threads, new processes,
// execs and ends. What lives for milliseconds is over before /proc is listed again.
//
// perf_event_open(2): side-band records of an event that counts CPU time and that children inherit. It needs no
// rights beyond those to look at the process, unless kernel.perf_event_paranoid is 3 or more, or a filter
// refuses it. An inherited event can have a ring buffer only for one CPU, so there is one for each.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy {

struct Birth {
  enum class Kind : std::uint8_t {
    thread,      // `tid`, in process `pid`
    process,     // `pid`; its parent is `parent`
    exec,        // process `pid` is another program from now on
    thread_end,  // `tid`, of process `pid`; its last thread may be another one
    cpu_time,    // after that: it has used so many `ns`, a part of all; not for threads named to Births::watch()
  } kind = Kind::thread;
  pid_t pid = 0, tid = 0, parent = 0;
  std::int64_t ns = 0;
  std::uint64_t at = 0;  // ns, of system::Clock
};

class Births {
 public:
  // Nothing is watched yet. nullptr: the kernel does not allow it.
  static std::unique_ptr<Births> open();
  Births(const Births&) = delete;
  Births& operator=(const Births&) = delete;
  ~Births();

  // Watches threads that exist, and whatever they start from now on, for ever. What those have started that
  // are watched already is watched as well: it must not be named again. False: not all could be watched
  // (there are too many, or they have ended).
  bool watch(std::span<const pid_t> tids);
  // Hands over what has happened since, in the order of time. False: some of it was lost, because the
  // kernel's buffers were full.
  bool drain(const std::function<void(const Birth&)>& handle);
  // Sleeps until something happens, or until then.
  void wait(system::Clock::time_point until);

 private:
  struct Ring {
    int cpu = 0;
    FileDescriptor event;        // of luaspy's own thread, and empty: a target's would be hung up with its thread's end
    std::byte* bytes = nullptr;  // a page that says where the records are, then these
  };
  Births() = default;
  bool read(Ring& ring, std::vector<Birth>& into) const;

  std::size_t page_ = 0;                // bytes
  std::vector<Ring> rings_;             // one for each CPU
  std::vector<FileDescriptor> events_;  // of the target's threads; they write into the rings
};

}  // namespace luaspy
