#pragma once
// Who allocates on a host: short turns of the probe of allocations between those of sampling, as many as its bounds
// allow. What is seen in a turn stands for the time until the next one.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "agent/window.h"
#include "allocations/allocation_loop.h"
#include "sampling/probe_turns.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class HostAllocations : public Probe, public AllocationSink {
 public:
  // Shares, 0 to 1: of one CPU, and of a program's time.
  struct Bounds {
    double cpu = 0, stopped = 0;
  };
  // `tree` must outlive it.
  HostAllocations(ProcessTree& tree, const Bounds& bounds, std::uint64_t seed);

  // In turns with sampling, whose turns have this length.
  system::Clock::duration until_turn() const;
  Result<void> run_until(system::Clock::time_point until) override;
  bool ended() const override { return false; }
  void forget(SampledProcess& process) override { loop_->forget(process); }

  // A window has ended, after so much time: how often the next turns come.
  void end_window(std::int64_t passed_ns);
  // What luaspy took of one CPU in the turns of the last window, 0 to 1.
  double used() const { return used_; }
  std::int64_t samples() const { return samples_; }  // of all windows

  // Profiles of bytes and of objects, as Window::take_profiles().
  std::vector<Window::Of> take_bytes() { return bytes_.take_profiles(); }
  std::vector<Window::Of> take_objects() { return objects_.take_profiles(); }
  // For the sinks of sampling: it tells when the tables are renewed.
  SampleSink& renewal() { return renewal_; }

 private:
  void add(ThreadId thread, const Tick& tick, const AllocationSample& allocation, Sample& sample) override;
  void add_loss(Loss) override {}  // the others stand for it
  void look(const AllocationCounts&) override {}
  void renew_loop();

  class Renewal : public SampleSink {
   public:
    explicit Renewal(HostAllocations& of) : of_(of) {}
    void add(ThreadId, const Tick&, const Sample&) override {}
    void add_idle(ThreadId, std::int64_t) override {}
    void add_waiting(ThreadId, std::int64_t) override {}
    void add_loss(Loss, std::int64_t) override {}
    void tables_renewed() override {
      of_.bytes_.tables_renewed();
      of_.objects_.tables_renewed();
    }

   private:
    HostAllocations& of_;
  };

  ProcessTree& tree_;
  const double most_cpu_, shortest_pause_;
  std::mt19937_64 random_;
  Window bytes_, objects_;
  Renewal renewal_{*this};
  AllocationCounts counts_;  // of loop_
  std::unique_ptr<AllocationLoop> loop_;
  double pause_ = 40;       // after a turn, in its lengths, on average
  double stands_for_ = 41;  // this turn, with the pause after it, in its lengths
  system::Clock::time_point next_turn_;
  std::int64_t cpu_ns_ = 0;  // of this window's turns
  double used_ = 0;
  std::int64_t samples_ = 0;
  std::string refused_;  // what was said last
};

}  // namespace luaspy
