#include "top/top_table.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t most_functions = 50'000, most_entries = 500'000, most_threads = 1000, most_names = 16;

std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

// A Lua function can have different names in different callers.
bool may_be_given_a_name(const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.line_defined != 0; }

// Of one prototype, or the same C function.
bool is_same_code(const Frame& a, const Frame& b) {
  return a.kind == b.kind && a.line_defined == b.line_defined && a.prototype == b.prototype && a.file == b.file &&
         (may_be_given_a_name(a) || a.name == b.name);
}

std::size_t hash_of_function(const Frame& frame) {
  std::size_t hash = std::hash<std::string>()(may_be_given_a_name(frame) ? frame.file : frame.name);
  hash = hash * 31 + static_cast<std::size_t>(frame.line_defined);
  hash = hash * 31 + frame.prototype;
  return hash * 31 + static_cast<std::size_t>(frame.kind);
}

}  // namespace

TopTable::TopTable(const EventTables& tables, Mode mode, std::optional<std::int64_t> window_ns)
    : tables_(tables), mode_(mode), window_(window_ns) {
  counts_.entries.emplace_back();
  counts_.functions.push_back({Frame::Kind::marker, "[more functions than are kept apart]", {}, 0, 0});
  names_.emplace_back();
}

TopTable::PerThread& TopTable::known(ThreadId thread) {
  const ThreadInfo& info = tables_.threads[thread];
  PerThread& known = threads_[info.key()];
  known.pid = info.pid;
  return known;
}

// One that is never sampled, as it sleeps, needs no row.
TopTable::Index TopTable::row_of(PerThread& known, ThreadId id) {
  if (known.row) return *known.row;
  const ThreadInfo& thread = tables_.threads[id];
  const auto next = static_cast<Index>(counts_.threads.size());
  if (own_rows_ < most_threads) {
    ++own_rows_;
    counts_.threads.push_back({thread.pid, thread.tid, thread.name, {}});
    return *(known.row = next);
  }
  const auto [row, added] = further_.emplace(thread.pid, next);
  if (added) counts_.threads.push_back({thread.pid, 0, "more threads", {}});
  return *(known.row = row->second);
}

// What recent looks point to is kept.
void TopTable::forget_ended() {
  constexpr std::uint64_t long_unseen = 1000;  // ticks
  std::erase_if(threads_, [&](const auto& each) {
    const PerThread& thread = each.second;
    return thread.ran.recent == 0 && (thread.ended || tick_ - thread.seen > long_unseen);
  });
  room_ = std::max(room_, 2 * threads_.size());
}

TopTable::Index TopTable::function_of(const Frame& frame) {
  const std::size_t hash = hash_of_function(frame);
  if (const std::optional<Index> known = find_function(hash, frame)) {
    if (may_be_given_a_name(frame)) record_name(*known, frame);
    return *known;
  }
  if (counts_.functions.size() >= most_functions) return 0;
  const auto index = static_cast<Index>(counts_.functions.size());
  counts_.functions.push_back(frame);
  counts_.functions.back().line = 0;
  counts_.functions.back().line_is_near = false;
  names_.emplace_back();
  function_index_.emplace(hash, index);
  if (may_be_given_a_name(frame)) record_name(index, frame), distinguish(index);
  if (frame.own_name) ++own_names_;
  return index;
}

// As Profile::resolve_names() does it: functions of one prototype that live in different places are
// different ones. While only one such place is known, the function is that one.
std::optional<TopTable::Index> TopTable::find_function(std::size_t hash, const Frame& frame) const {
  std::optional<Index> given, own;  // the function without an own name, and the last one with such a name
  int owners = 0;
  const auto [first, last] = function_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Frame& other = counts_.functions[known->second];
    if (!is_same_code(other, frame)) continue;
    if (!may_be_given_a_name(frame) || (frame.own_name && other.own_name && frame.name == other.name))
      return known->second;
    if (other.own_name) own = known->second, ++owners;
    else given = known->second;
  }
  if (!frame.own_name) return given || owners != 1 ? given : own;
  return owners == 0 ? given : std::nullopt;
}

// Functions that begin on the same line and have the same name are numbered.
void TopTable::distinguish(Index function) {
  Frame& frame = counts_.functions[function];
  if (frame.prototype == 0) return;
  const int count = ++same_place_[frame.file + '\n' + std::to_string(frame.line_defined) + '\n' + frame.name];
  frame.twin = count > 1 ? count : 0;
}

// Shows a function under its own name, else under its most frequent one. "function" and the generic
// names of iterators are replaced by a real name.
void TopTable::record_name(Index function, const Frame& frame) {
  const std::string& name = frame.name;
  Frame& its = counts_.functions[function];
  if (frame.own_name && !its.own_name) {
    const bool is_other = its.name != name;
    its.own_name = true, its.name = name;
    if (is_other) distinguish(function);
  }
  if (its.own_name) return;
  auto& seen = names_[function].seen;
  auto known = std::ranges::find(seen, name, &std::pair<std::string, std::int64_t>::first);
  if (known == seen.end()) {
    if (seen.size() == most_names) return;
    known = seen.insert(seen.end(), {name, 0});
  }
  if (name == "function") return;
  if (name == "for iterator") known->second = 1;
  else known->second += 2;
  std::string& shown = its.name;
  if (shown == name) return;
  const auto best = std::ranges::find(seen, shown, &std::pair<std::string, std::int64_t>::first);
  if (best == seen.end() || best->second < known->second) shown = name, distinguish(function);
}

TopTable::Index TopTable::line_of(Index function, const Frame& frame) {
  const auto line = static_cast<std::uint32_t>(std::max(frame.line, 0)) << 1 |
                    static_cast<std::uint32_t>(frame.line_is_near);
  const auto [place, added] = line_index_.emplace(pair_of(function, line), static_cast<Index>(counts_.lines.size()));
  if (added) counts_.lines.push_back({function, frame.line, frame.line_is_near});
  return place->second;
}

TopTable::Index TopTable::entry_of(TopCounts::Entry::Kind kind, Index a, Index b) {
  auto& index = entry_index_[static_cast<std::size_t>(kind)];
  const auto known = index.find(pair_of(a, b));
  if (known != index.end()) return known->second;
  if (counts_.entries.size() >= most_entries) return 0;
  const auto entry = static_cast<Index>(counts_.entries.size());
  counts_.entries.push_back({kind, a, b, {}});
  index.emplace(pair_of(a, b), entry);
  return entry;
}

std::shared_ptr<const TopTable::Path> TopTable::path_of(Index thread, StackId id) {
  using Kind = TopCounts::Entry::Kind;
  auto path = std::make_shared<Path>();
  path->own_names = own_names_;
  Stack stack = tables_.stacks.frames_of(id);
  keep_shown(mode_, stack);
  path->calls.reserve(stack.size());
  Index caller = 0;
  for (std::size_t depth = 0; depth < stack.size(); ++depth) {
    const Index function = function_of(stack[depth]);
    path->calls.push_back({function, stack[depth].line, stack[depth].line_is_near});
    path->own_function = entry_of(Kind::function, thread, function);
    // Lines, like functions, are counted separately as long as there is room for them.
    path->own_line = counts_.lines.size() < most_entries ? entry_of(Kind::line, thread, line_of(function, stack[depth]))
                                                         : 0;
    path->totals.push_back(path->own_function);
    path->totals.push_back(path->own_line);
    if (depth != 0) path->totals.push_back(entry_of(Kind::call, caller, function));
    caller = function;
  }
  std::ranges::sort(path->totals);
  path->totals.erase(std::unique(path->totals.begin(), path->totals.end()), path->totals.end());
  return path;
}

void TopTable::observe(Activity activity) {
  if (activity == Activity::machine_code || activity == Activity::compiling) set_luajit();
  if (activity == Activity::collecting) counts_.sees_collector = true;
}

void TopTable::see(PerThread& thread) {
  if (thread.seen == tick_) return;
  thread.seen = tick_;
  ++seen_;
}

void TopTable::add_idle(ThreadId thread, std::int64_t count) {
  see(known(thread));
  counts_.asleep += count;
}

void TopTable::add_waiting(ThreadId thread, std::int64_t count) {
  see(known(thread));
  waiting_ += count;
  counts_.looks_waiting += count;
}

// A look that was due at a thread that executed, and gave nothing, is not idle time.
void TopTable::add_loss(Loss loss, std::int64_t count) {
  counts_.losses[static_cast<std::size_t>(loss)] += count;
  ran_ |= count != 0 && loss != Loss::skipped && loss != Loss::left_out && loss != Loss::ended && loss != Loss::moved;
}

void TopTable::add(ThreadId thread, std::int64_t passed_ns, const Sample& sample) {
  if (sample.loss != Loss::none) add_loss(sample.loss);
  PerThread& memo = known(thread);
  memo.ended = sample.loss == Loss::ended;
  if (memo.ended) return;
  see(memo);
  Look look = {clock_ + passed_ns, passed_ns, nullptr, &memo, Activity::lua, false, sample.stopped_ns};
  if (sample.loss == Loss::none) {
    const Index row = row_of(memo, thread);
    look.activity = activity_of(sample.vm_state);
    observe(look.activity);
    if (memo.path == nullptr || memo.path->own_names != own_names_ || memo.stack != sample.stack) {
      memo.stack = sample.stack;
      memo.path = path_of(row, sample.stack);
    }
    counts_.quality += sample.quality;
    ++counts_.samples;
    look.path = memo.path;
    look.ran = sample.state == Sample::State::running;
  }
  ran_ |= sample.state == Sample::State::running;
  waiting_ += sample.state == Sample::State::waiting;
  count(look, &TopCounts::Span::recent, 1);
  count(look, &TopCounts::Span::all, 1);
  if (window_) keep(std::move(look));
}

void TopTable::forget_stacks() {
  for (auto& [key, thread] : threads_) thread.path = nullptr;
}

void TopTable::keep(Look look) {
  if (look.path != nullptr) {
    latest_.resize(counts_.entries.size());
    for (const Index entry : look.path->totals) latest_[entry].total = look_;
    latest_[look.path->own_function].own = latest_[look.path->own_line].own = look_;
  }
  ++look_;
  looks_.push_back(std::move(look));
}

void TopTable::count_run(PerThread& thread, Member span, std::int64_t weight) {
  const bool ran_before = thread.ran.*span != 0;
  thread.ran.*span += weight;
  counts_.ran.*span += (thread.ran.*span != 0) - ran_before;
  if (thread.row) counts_.threads[*thread.row].ran.*span += weight;
}

void TopTable::count(const Look& look, Member span, std::int64_t sign) {
  const std::int64_t weight = sign * look.weight;
  counts_.stopped.*span += sign * look.stopped;
  if (look.ran) {
    counts_.activity[static_cast<std::size_t>(look.activity)].*span += weight;
    if (weight != 0) count_run(*look.thread, span, weight);
  }
  if (look.path == nullptr) return;
  for (const Index entry : look.path->totals) counts_.entries[entry].times.total.*span += weight;
  counts_.entries[look.path->own_function].times.own.*span += weight;
  counts_.entries[look.path->own_line].times.own.*span += weight;
}

bool TopTable::is_of(Index index, const TopRow& row) const {
  using Kind = TopCounts::Entry::Kind;
  const TopCounts::Entry& entry = counts_.entries[index];
  if (entry.kind != (row.line != 0 ? Kind::line : Kind::function)) return false;
  if (row.thread != TopRow::all_threads && entry.a != row.thread) return false;
  if (row.pid != 0 && counts_.threads[entry.a].pid != row.pid) return false;
  if (row.line == 0) return entry.b == row.function;
  const TopCounts::FunctionLine& line = counts_.lines[entry.b];
  return line.function == row.function && line.line == row.line && line.is_near == row.is_near;
}

std::optional<TopSeen> TopTable::latest(const TopRow& row) const {
  Latest latest;
  for (std::size_t entry = 0; entry < latest_.size(); ++entry) {
    if (!is_of(static_cast<Index>(entry), row)) continue;
    latest.own = std::max(latest.own, latest_[entry].own);
    latest.total = std::max(latest.total, latest_[entry].total);
  }
  const std::uint64_t oldest = look_ - looks_.size(), number = latest.own >= oldest ? latest.own : latest.total;
  if (number < oldest) return {};
  const Look& look = looks_[number - oldest];
  TopSeen seen = {look.thread->pid, {}};
  for (const Path::Call& call : look.path->calls) {
    Frame& frame = seen.stack.emplace_back(counts_.functions[call.function]);
    frame.line = call.line;
    frame.line_is_near = call.is_near;
  }
  return seen;
}

void TopTable::end_tick(std::int64_t passed_ns, std::int64_t ticks) {
  clock_ += passed_ns;
  const auto count_tick = [&](const Tick& tick, Member span, std::int64_t sign) {
    counts_.elapsed.*span += sign * tick.weight;
    counts_.ticks.*span += sign * tick.count;
    counts_.waiting.*span += sign * tick.waiting * tick.weight / std::max<std::int64_t>(tick.count, 1);
    if (tick.idle) counts_.idle.*span += sign * tick.weight;
  };
  const Tick tick = {clock_, passed_ns, !ran_ && waiting_ == 0, ticks, std::exchange(waiting_, 0)};
  count_tick(tick, &TopCounts::Span::recent, 1);
  count_tick(tick, &TopCounts::Span::all, 1);
  if (window_) {
    ticks_.push_back(tick);
    for (; !looks_.empty() && looks_.front().end <= clock_ - *window_; looks_.pop_front())
      count(looks_.front(), &TopCounts::Span::recent, -1);
    for (; !ticks_.empty() && ticks_.front().end <= clock_ - *window_; ticks_.pop_front())
      count_tick(ticks_.front(), &TopCounts::Span::recent, -1);
  }
  counts_.threads_now = seen_;
  seen_ = 0;
  ran_ = false;
  ++tick_;
  if (threads_.size() >= room_) forget_ended();
}

void TopTable::begin_window() {
  looks_.clear();
  ticks_.clear();
  for (TopCounts::Entry& entry : counts_.entries) entry.times.own.recent = entry.times.total.recent = 0;
  for (TopCounts::ThreadName& thread : counts_.threads) thread.ran.recent = 0;
  for (auto& [key, thread] : threads_) thread.ran.recent = 0;
  counts_.ran.recent = 0;
  for (TopCounts::Span& span : counts_.activity) span.recent = 0;
  for (TopCounts::Span* const span :
       {&counts_.elapsed, &counts_.ticks, &counts_.idle, &counts_.waiting, &counts_.stopped})
    span->recent = 0;
}

void TopTable::reset() {
  looks_.clear();
  ticks_.clear();
  for (TopCounts::Entry& entry : counts_.entries) entry.times = {};
  for (TopCounts::ThreadName& thread : counts_.threads) thread.ran = {};
  for (auto& [key, thread] : threads_) thread.ran = {};
  counts_.ran = {};
  counts_.elapsed = counts_.ticks = counts_.idle = counts_.waiting = counts_.stopped = {};
  counts_.activity = {};
  counts_.losses = {};
  counts_.quality = {};
  counts_.samples = counts_.asleep = counts_.looks_waiting = 0;
}

}  // namespace luaspy
