#include "agent/agent_text.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "base/version.h"
#include "profile/amount_text.h"

namespace luaspy {
namespace {

constexpr double kilobyte = 1e3, mebibyte = 1 << 20;

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

double seconds_of(system::Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// A label's value: \, " and line breaks have to be escaped; names are printable, and have none of the latter.
std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

class Metrics {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <typename Number>
  void value(Number number, std::string_view labels = {}) {
    if (labels.empty()) text_ += fmt::format("{} {}\n", name_, number);
    else text_ += fmt::format("{}{{{}}} {}\n", name_, labels, number);
  }
  template <typename Number>
  void one(std::string_view name, std::string_view type, std::string_view help, Number number) {
    family(name, type, help);
    value(number);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void add_sending(Metrics& metrics, const OutboxCounts& counts) {
  metrics.family("luaspy_agent_messages_total", "counter", "Messages to the engine, by what became of them.");
  metrics.value(counts.sent, "result=\"sent\"");
  metrics.value(counts.refused, "result=\"refused\"");
  metrics.value(counts.dropped, "result=\"dropped\"");
  metrics.one("luaspy_agent_sent_bytes_total", "counter", "Bytes of messages that the engine has.", counts.sent_bytes);
  metrics.one("luaspy_agent_waiting_messages", "gauge", "Messages that wait to be sent.", counts.waiting);
  metrics.one("luaspy_agent_waiting_bytes", "gauge", "Bytes of these.", counts.waiting_bytes);
}

void add_processes(Metrics& metrics, const std::vector<Tally::Of>& processes) {
  const auto labels = [](const Tally::Of& process) {
    return fmt::format("pid=\"{}\",name=\"{}\"", process.pid, label(process.name));
  };
  metrics.family("luaspy_process_samples_total", "counter", "Samples of a process.");
  for (const Tally::Of& each : processes) metrics.value(each.samples, labels(each));
  metrics.family("luaspy_process_lost_samples_total", "counter", "Samples of a process that were lost.");
  for (const Tally::Of& each : processes) metrics.value(each.lost, labels(each));
  metrics.family("luaspy_process_lua_heap_bytes", "gauge", "Lua heaps of a process that were used in the last minute.");
  for (const Tally::Of& each : processes) metrics.value(each.heap_bytes, labels(each));
  metrics.family("luaspy_process_lua_collections_total", "counter", "Rounds of the collectors of a process, at least.");
  for (const Tally::Of& each : processes) metrics.value(each.collections, labels(each));
  metrics.family("luaspy_process_stopped_seconds_total", "counter", "How long threads of a process stood still.");
  for (const Tally::Of& each : processes) metrics.value(seconds_of(each.stopped_ns), labels(each));
}

std::string sending_text(const AgentState& state) {
  if (state.to.empty()) return "sends nothing\n";
  const OutboxCounts& counts = state.outbox;
  return fmt::format("sends to {}: {} messages, {:.1f} kB; {} refused, {} dropped, {} waiting ({:.1f} kB)\n{}",
                     state.to, counts.sent, static_cast<double>(counts.sent_bytes) / kilobyte, counts.refused,
                     counts.dropped, counts.waiting, static_cast<double>(counts.waiting_bytes) / kilobyte,
                     counts.trouble.empty() ? "" : fmt::format("  {}\n", counts.trouble));
}

}  // namespace

std::string status_text(const AgentState& state) {
  const Tally::Sums& sums = state.sums;
  std::string text = fmt::format("luaspy {}: {} Lua programs, {}, {} lost\n", version, sums.processes.size(),
                                 count_of(sums.samples, "sample"), sums.lost);
  text += fmt::format("{:.3g} Hz of {:.3g}; {:.2f} % of a CPU of {:.3g}\n", state.rate, state.wanted_rate,
                      100 * state.cpu, 100 * state.most_cpu);
  if (state.allocation_samples)
    text += fmt::format("{} of allocations\n", count_of(*state.allocation_samples, "sample"));
  text += sending_text(state);
  if (state.kept)
    text += fmt::format("keeps the last {:.0f} s in {:.1f} MiB{}; {} written\n", seconds_of(state.kept->time),
                        static_cast<double>(state.kept->bytes) / mebibyte, state.kept->is_full ? ", which is full" : "",
                        count_of(state.snapshots, "snapshot"));
  for (const Tally::Of& each : sums.processes)
    text += fmt::format("{:>8}  {}  {}, {} lost; stood still {:.1f} ms; Lua heap {:.1f} MiB  {}\n", each.pid, each.name,
                        count_of(each.samples, "sample"), each.lost, static_cast<double>(each.stopped_ns) / 1e6,
                        static_cast<double>(each.heap_bytes) / mebibyte, each.luas);
  return text;
}

std::string metrics_text(const AgentState& state) {
  Metrics metrics;
  metrics.family("luaspy_agent_info", "gauge", "The version of the agent.");
  metrics.value(1, fmt::format("version=\"{}\"", label(version)));
  metrics.one("luaspy_agent_processes", "gauge", "Processes that are sampled.", state.sums.processes.size());
  metrics.one("luaspy_agent_rate_hertz", "gauge", "Samples per second of a thread.", state.rate);
  metrics.one("luaspy_agent_samples_total", "counter", "Samples of all processes.", state.sums.samples);
  metrics.one("luaspy_agent_lost_samples_total", "counter", "Samples that were lost.", state.sums.lost);
  metrics.one("luaspy_agent_stopped_seconds_total", "counter", "How long threads stood still.",
              seconds_of(state.sums.stopped_ns));
  metrics.one("luaspy_agent_cpu_seconds_total", "counter", "CPU time of the agent.", seconds_of(state.cpu_ns));
  if (state.allocation_samples)
    metrics.one("luaspy_agent_allocation_samples_total", "counter", "Samples of allocations.",
                *state.allocation_samples);
  if (!state.to.empty()) add_sending(metrics, state.outbox);
  if (state.kept) {
    metrics.one("luaspy_agent_kept_seconds", "gauge", "How far back snapshots reach.", seconds_of(state.kept->time));
    metrics.one("luaspy_agent_kept_bytes", "gauge", "Bytes of what is kept.", state.kept->bytes);
    metrics.one("luaspy_agent_snapshots_total", "counter", "Snapshots that were written.", state.snapshots);
  }
  add_processes(metrics, state.sums.processes);
  return metrics.take();
}

std::string http_answer(const std::string& request, const AgentState& state) {
  const std::string_view line = std::string_view(request).substr(0, request.find_first_of("\r\n"));
  const std::size_t space = line.find(' ');
  const std::string_view method = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  const std::string_view path = rest.substr(0, rest.find_first_of(" ?"));
  const auto answer = [&](std::string_view status, std::string_view type, std::string_view body) {
    return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       type, body.size(), method == "HEAD" ? "" : body);
  };
  constexpr std::string_view plain = "text/plain; charset=utf-8";
  if (method != "GET" && method != "HEAD")
    return answer("405 Method Not Allowed\r\nAllow: GET, HEAD", plain, "Only GET and HEAD.\n");
  if (path != "/metrics") return answer("404 Not Found", plain, "There is /metrics.\n");
  return answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics_text(state));
}

}  // namespace luaspy
