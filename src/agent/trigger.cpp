#include "agent/trigger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"

namespace luaspy {
namespace {

using system::Clock;
using namespace std::chrono_literals;

constexpr Clock::duration cpu_time_span = 5s;  // over which CPU time is measured
constexpr Clock::duration longest_gap = 3s;    // between two samples of a thread that is stuck

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

// "90", "1.5G", "5s": a number above 0 with one of these units, or without.
std::optional<double> number_in(std::string_view text, std::initializer_list<std::pair<char, double>> units) {
  double factor = 1, number = 0;
  for (const auto& [unit, value] : units) {
    if (!text.ends_with(unit)) continue;
    factor = value;
    text.remove_suffix(1);
    break;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr double most = 1e15;
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number > 0 && number < most;
  return is_number ? std::optional(number * factor) : std::nullopt;
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Result<Trigger> parse_trigger(const std::string& text) {
  const std::string_view words = trimmed(text);
  const std::size_t end = std::min(words.find_first_of(" >"), words.size());
  const std::string_view name = words.substr(0, end);
  std::string_view rest = trimmed(words.substr(end));
  const bool has_sign = rest.starts_with('>');
  if (has_sign) rest = trimmed(rest.substr(1));
  std::optional<double> limit;
  Trigger::Kind kind = Trigger::Kind::cpu;
  if (name == "cpu" && has_sign) {
    limit = number_in(rest, {{'%', 1}});
  } else if (name == "heap" && has_sign) {
    kind = Trigger::Kind::heap;
    limit = number_in(rest, {{'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}});
  } else if (name == "looks-stuck" && !has_sign) {
    kind = Trigger::Kind::looks_stuck;
    limit = number_in(rest, {{'s', 1}, {'m', 60}});
  }
  if (limit) return Trigger{kind, *limit, std::string(words)};
  return Error{Cause::usage, fmt::format("'{}': it has to be 'cpu > PERCENT', 'heap > BYTES' (1G, 512M, 64K) or "
                                         "'looks-stuck SECONDS'",
                                         printable(text))};
}

TriggerWatch::TriggerWatch(const EventTables& tables, std::vector<Trigger> triggers, Clock::duration hold_off, Act act,
                           CpuTime cpu_time)
    : tables_(tables),
      triggers_(std::move(triggers)),
      hold_off_(hold_off),
      act_(std::move(act)),
      cpu_time_(std::move(cpu_time)) {
  for (const Trigger& trigger : triggers_) {
    watches_functions_ |= trigger.kind == Trigger::Kind::looks_stuck;
    watches_cpu_ |= trigger.kind == Trigger::Kind::cpu;
  }
}

// What dump compares, too: not the names of functions, which depend on their callers.
std::uint64_t TriggerWatch::functions_of(StackId stack) {
  const auto [place, added] = functions_.try_emplace(stack);
  if (!added) return place->second;
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15 + 1; };
  for (StackId at = stack; at != empty_stack; at = tables_.stacks.nodes()[at].outer) {
    const Frame& frame = tables_.stacks.frames()[tables_.stacks.nodes()[at].frame];
    if (frame.kind != Frame::Kind::lua) continue;
    mix(std::hash<std::string>()(frame.file));
    mix(static_cast<std::uint64_t>(frame.line_defined));
    mix(frame.prototype);
  }
  return place->second = hash;
}

void TriggerWatch::watch_functions(ThreadId id, Time at, StackId stack) {
  const std::uint64_t functions = functions_of(stack);
  Thread& thread = threads_[id];
  if (functions != thread.functions || at - thread.seen > longest_gap) thread.since = at;
  thread.functions = functions;
  thread.seen = at;
  if (functions == 0) return;
  double& stuck_s = processes_[tables_.threads[id].pid].stuck_s;
  stuck_s = std::max(stuck_s, seconds(at - thread.since));
}

void TriggerWatch::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  if (sample.loss != Loss::none) return;
  const Time at = start_ + std::chrono::nanoseconds(tick.at_ns);
  Process& process = processes_[tables_.threads[thread].pid];
  process.seen = at;
  process.heaps.add(sample.heaps, at);
  if (!watches_functions_) return;
  if (sample.state == Sample::State::running) watch_functions(thread, at, sample.stack);
  else if (sample.state == Sample::State::sleeping) threads_.erase(thread);
}

void TriggerWatch::add_idle(ThreadId thread, std::int64_t) { threads_.erase(thread); }

void TriggerWatch::tables_renewed() {
  threads_.clear();
  functions_.clear();
}

std::optional<double> TriggerWatch::value_of(const Trigger& trigger, Process& process, Time now) {
  switch (trigger.kind) {
    case Trigger::Kind::cpu: {
      if (process.cpu.size() < 2 || now - process.cpu.front().first < cpu_time_span) return std::nullopt;
      const auto& [first, from] = process.cpu.front();
      const auto& [last, until] = process.cpu.back();
      return 100 * static_cast<double>(until - from) / static_cast<double>(system::to_ns(last - first));
    }
    case Trigger::Kind::heap:
      return static_cast<double>(process.heaps.bytes(now));
    case Trigger::Kind::looks_stuck:
      return process.stuck_s;
  }
  return std::nullopt;
}

void TriggerWatch::test(Time now) {
  if (now - tested_ < 1s) return;
  tested_ = now;
  for (auto& [pid, process] : processes_) {
    if (watches_cpu_) {
      const std::optional<std::int64_t> used = cpu_time_(pid);
      if (used) process.cpu.emplace_back(now, *used);
      // The last one before the span stays.
      while (process.cpu.size() > 2 && now - process.cpu[1].first >= cpu_time_span) process.cpu.pop_front();
    }
    const bool held_off = process.acted && now - *process.acted < hold_off_;
    for (const Trigger& trigger : triggers_) {
      if (held_off) break;
      const std::optional<double> value = value_of(trigger, process, now);
      if (!value || *value < trigger.limit || !act_(pid, trigger.text)) continue;
      process.acted = now;
      break;
    }
    process.stuck_s = 0;
  }
  const Clock::duration remembered = std::max<Clock::duration>(hold_off_, RecentHeaps::remembered);
  std::erase_if(processes_, [&](const auto& each) { return now - each.second.seen > remembered; });
  std::erase_if(threads_, [&](const auto& each) { return now - each.second.seen > longest_gap; });
}

}  // namespace luaspy
