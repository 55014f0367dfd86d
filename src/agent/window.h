#pragma once
// What was sampled on a host in some seconds: a profile for each program of each process.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile_builder.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class Window : public SampleSink {
 public:
  // `tables`: what the numbers of samples stand for; they must outlive it. `unit`: of the samples' weights.
  explicit Window(const EventTables& tables, Unit unit = Unit::nanoseconds) : tables_(tables), unit_(unit) {}

  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t count) override { lost_ += count; }
  void tables_renewed() override;

  struct Of {
    int pid = 0;
    std::uint64_t program = 0;  // ThreadKey::program
    std::string command;
    std::unique_ptr<Profile> profile;  // with its names, and without its metadata but the unit
  };
  // Those that have samples. It is empty afterwards.
  std::vector<Of> take_profiles();
  std::int64_t samples() const { return samples_; }
  std::int64_t lost() const { return lost_; }

 private:
  ProfileBuilder& builder_of(const ThreadInfo& thread);
  using Key = std::pair<int, std::uint64_t>;  // ThreadKey::pid and program
  struct Building {
    std::string command;
    std::unique_ptr<ProfileBuilder> builder;
  };

  const EventTables& tables_;
  const Unit unit_;
  std::map<Key, Building> building_;
  std::vector<Of> finished_;
  std::int64_t samples_ = 0, lost_ = 0;
};

}  // namespace luaspy
