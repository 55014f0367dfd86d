#pragma once
// What waits to be sent by a thread of its own, so that no sample waits for an engine. It is bounded: if an engine is
// away for longer than there is room for, the oldest requests go, and are counted.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sending/delivery.h"
#include "sending/http.h"

namespace luaspy {

struct OutboxCounts {
  std::int64_t sent = 0, refused = 0, dropped = 0;  // requests
  std::int64_t sent_bytes = 0;
  std::int64_t waiting = 0, waiting_bytes = 0;
  std::string trouble;  // the engine's last answer, if that was no success
};

// The requests, in the order in which they came.
class SendQueue {
 public:
  explicit SendQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  // Whatever has no room is dropped, the oldest first; a request that is larger than all of it, at once.
  void add(HttpRequest request);
  // Its number; it keeps its place until it is removed, or dropped. nullopt: there is none.
  std::optional<std::int64_t> first() const;
  // Of that number; nullptr: it was dropped meanwhile.
  const HttpRequest* find(std::int64_t number) const;
  void remove(std::int64_t number);
  std::size_t bytes() const { return bytes_; }
  std::int64_t size() const { return static_cast<std::int64_t>(requests_.size()); }
  std::int64_t dropped() const { return dropped_; }

 private:
  void drop_first();
  static std::size_t size_of(const HttpRequest& request);

  const std::size_t most_bytes_;
  std::deque<HttpRequest> requests_;
  std::int64_t first_ = 0, dropped_ = 0;  // first_: number of the first one
  std::size_t bytes_ = 0;
};

class Outbox {
 public:
  using Say = std::function<void(const std::string&)>;
  // `say`: what changes: the engine is away, is back, has refused something. Called by the sending thread.
  Outbox(std::unique_ptr<HttpClient> client, std::size_t most_bytes, std::uint64_t seed, Say say);
  // Without what still waits.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void add(HttpRequest request);
  OutboxCounts counts() const;
  // Sends what waits, as far as that is possible in this time.
  void finish(std::chrono::milliseconds patience);

 private:
  void run();
  void handle(const Outcome& outcome);

  const std::unique_ptr<HttpClient> client_;
  const Say say_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  SendQueue queue_;
  OutboxCounts counts_;
  RetryPause retry_pause_;
  bool ends_ = false;
  std::string trouble_;  // what was said last
  std::thread thread_;
};

}  // namespace luaspy
