#pragma once
// A request is sent until the engine has it, refuses it, or the time is over.

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "base/result.h"
#include "sending/http.h"

namespace luaspy {

// How long to wait before a request is sent again: twice as long each time, from one second to a minute, and at random
// between half of that and all of it, so that many luaspys do not come back at once. Never less than the engine asks
// for, up to five minutes.
class RetryPause {
 public:
  using Duration = std::chrono::milliseconds;
  explicit RetryPause(std::uint64_t seed) : random_(seed) {}
  Duration next(std::optional<std::chrono::seconds> retry_after);
  void reset() { tries_ = 0; }

 private:
  std::mt19937_64 random_;
  int tries_ = 0;
};

struct Outcome {
  enum class Kind { delivered, again, refused } kind = Kind::again;
  std::string why;                                  // not delivered, or without a part of it: a sentence
  std::optional<std::chrono::seconds> retry_after;  // again
};
// One try. `again` (an engine that cannot be reached, is busy or broken) may be tried later; `refused` will be refused
// each time.
Outcome send_once(HttpClient& client, const HttpRequest& request);

struct DeliveryOptions {
  std::chrono::seconds patience{30};  // no new try after that
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  // False: a signal asks luaspy to end.
  std::function<bool(RetryPause::Duration)> sleep;
  std::function<void(const std::string&)> say;  // what went wrong, before each new try
};
// An Error: not delivered, and why. What an engine has not taken of what was delivered is said.
Result<void> deliver(HttpClient& client, const HttpRequest& request, RetryPause& retry_pause,
                     const DeliveryOptions& options);

}  // namespace luaspy
