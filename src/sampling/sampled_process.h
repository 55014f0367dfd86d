#pragma once
// What samplers need to know of a process, and may do to it. A Session is one; tests have others.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/memory.h"
#include "base/sample.h"
#include "base/thread_key.h"
#include "sampling/sampler.h"

namespace luaspy {

class SampledProcess {
 public:
  virtual ~SampledProcess() = default;

  virtual pid_t pid() const = 0;
  // ThreadKey::program of its threads.
  virtual std::uint64_t program() const = 0;
  // Those that exist now. A thread keeps its Thread object from call to call.
  virtual const std::vector<std::shared_ptr<Thread>>& threads() = 0;
  // One of them was found to have ended: the next threads() lists them again.
  virtual void forget_threads() = 0;
  virtual ThreadKey key_of(const Thread& thread) const = 0;
  // Its number among the threads of the recording's tables. The first time, its name is asked for.
  virtual ThreadId id_of(const Thread& thread) = 0;
  virtual const Memory& memory() const = 0;

  // ---- Looks, by any thread: as those of Sampler. begin_look() gives up after 100 µs; if it succeeds, end_look()
  // has to follow what is read.
  virtual std::unique_ptr<Stop> ask_to_stop(Tracer& tracer, pid_t tid) = 0;
  virtual bool begin_look() = 0;
  virtual Loss read_stopped(Stop& stop, Thread& thread, const StackReader::Prediction& predicted,
                            Sampler::Look& look) = 0;
  virtual Loss read_without_stop(const SwitchLog& switches, const SwitchLog::Switch& lost,
                                 const StackReader::Prediction& predicted, Sampler::Look& look) = 0;
  virtual Loss read_asleep(Thread& thread, const ThreadState& state, const StackReader::Prediction& predicted,
                           Sampler::Look& look) = 0;
  virtual void end_look() = 0;

  // ---- By the main thread.
  virtual Sample finish(Sampler::Look& look, StackReader::Prediction& predicted) = 0;
};

}  // namespace luaspy
