#pragma once
// Writes snapshots of what a flight recorder keeps: one at a time, and never in the thread that samples.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/snapshot.h"

namespace luaspy {

class Snapshots {
 public:
  // `recorder` must outlive it.
  Snapshots(FlightRecorder& recorder, SnapshotFolder options) : recorder_(recorder), options_(std::move(options)) {}
  // Waits for the one that is being written.
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // As write_snapshot(). May be called by any thread but the one that samples.
  Result<std::vector<std::string>> write(int pid);
  // For the thread that samples: another one writes it, and says so, with the reason. False: one that was begun like
  // this is still being written, or was begun less than ten seconds ago.
  bool begin(int pid, const std::string& why);
  std::int64_t files() const { return files_; }  // written until now

 private:
  FlightRecorder& recorder_;
  const SnapshotFolder options_;
  std::mutex lock_;
  std::atomic<std::int64_t> files_ = 0;
  std::atomic<bool> is_busy_ = false;
  system::Clock::time_point begun_{};
  std::thread writes_;
};

}  // namespace luaspy
