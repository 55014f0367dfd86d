#pragma once
// What an agent says of itself, for people and for Prometheus.

#include <cstdint>
#include <optional>
#include <string>

#include "agent/flight_recorder.h"
#include "agent/tally.h"
#include "sending/outbox.h"

namespace luaspy {

struct AgentState {
  Tally::Sums sums;
  double rate = 0, wanted_rate = 0;  // Hz: now; asked for
  double cpu = 0, most_cpu = 0;      // share of one CPU in the last window, 0 to 1; the budget
  std::int64_t cpu_ns = 0;           // that luaspy has used since it began
  std::string to;                    // URL; "": nothing is sent
  OutboxCounts outbox;
  std::optional<FlightRecorder::Size> kept;
  std::int64_t snapshots = 0;  // files
  std::optional<std::int64_t> allocation_samples{};
};

// Lines for people.
std::string status_text(const AgentState& state);
// Prometheus' text format, version 0.0.4.
std::string metrics_text(const AgentState& state);
// All of an HTTP answer to a request, of which the first line counts: GET /metrics.
std::string http_answer(const std::string& request, const AgentState& state);

}  // namespace luaspy
