#include "output/raw.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "base/varint.h"
#include "profile/raw_format.h"

namespace luaspy {
namespace {

constexpr std::size_t block_size = 1 << 16;  // a block of this size is written without a flush()

void put(std::string& bytes, std::uint64_t number) { put_varint(bytes, number); }
void put(std::string& bytes, std::int64_t number) { put(bytes, static_cast<std::uint64_t>(number)); }

void put(std::string& bytes, std::string_view text) {
  text = text.substr(0, raw::longest_string);
  put(bytes, std::uint64_t{text.size()});
  bytes += text;
}

void put_u32(std::string& bytes, std::size_t number) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
}

std::map<std::string, std::string> words(const Metadata& about) {
  std::map<std::string, std::string> words = {{"luaspy", about.luaspy},
                                              {"command", about.command},
                                              {"executable", about.executable},
                                              {"pid", std::to_string(about.pid)},
                                              {"luas", joined(about.luas, "\n")},
                                              {"lua_mapped", about.lua_mapped ? "1" : "0"},
                                              {"mode", about.mode},
                                              {"rate_hz", fmt::format("{}", about.rate)},
                                              {"max_stopped_percent", fmt::format("{}", about.max_stopped)},
                                              {"started_s", std::to_string(about.started_s)},
                                              {"duration_ns", std::to_string(about.duration_ns)},
                                              {"ticks", std::to_string(about.ticks)},
                                              {"complete", about.complete ? "1" : "0"}};
  if (!about.kind.empty()) words.emplace("kind", about.kind);
  if (!about.timed) words.emplace("timed", "0");
  if (about.allocations != 0) words.emplace("allocations", std::to_string(about.allocations));
  if (about.sampled_ns != 0) words.emplace("sampled_ns", std::to_string(about.sampled_ns));
  if (about.cpu.system_share >= 0) words.emplace("system_share", fmt::format("{:.4f}", about.cpu.system_share));
  const auto add = [&](const char* key, std::int64_t ns) {
    if (ns > 0) words.emplace(key, std::to_string(ns));
  };
  add("lua_cpu_ns", about.cpu.lua_ns);
  add("other_cpu_ns", about.cpu.other_ns);
  add("unknown_cpu_ns", about.cpu.unknown_ns);
  add("sampled_cpu_ns", about.sampled_cpu_ns);
  return words;
}

// The flags that announce what put_facts() puts.
std::uint64_t facts_of(const Sample& sample, bool has_quality) {
  return (sample.stopped_ns != 0 ? raw::has_stop : 0) | (has_quality ? raw::has_quality : 0) |
         static_cast<std::uint64_t>(sample.vm_state) << raw::vm_state_shift;
}

}  // namespace

RawWriter::RawWriter(const EventTables& tables, Unit unit, std::ostream& out) : tables_(tables), out_(out) {
  out_ << raw::magic << static_cast<char>(raw::version);
  about(raw::unit_key, std::string(name(unit)));
}

void RawWriter::about(const Metadata& about) {
  for (const auto& [key, value] : words(about)) {
    const auto [place, added] = about_.emplace(key, value);
    if (!added && place->second == value) continue;
    place->second = value;
    this->about(key, value);
  }
}

void RawWriter::about(std::string_view key, const std::string& value) {
  std::string body;
  put(body, key);
  put(body, std::string_view(value));
  add_record(raw::about, body);
}

std::uint64_t RawWriter::number_of(const std::string& text) {
  const auto [place, added] = strings_.emplace(text, strings_.size());
  if (added) add_record(raw::string, text.substr(0, raw::longest_string));
  return place->second;
}

std::uint64_t RawWriter::number_of(FrameId id) {
  if (!frames_.numbers.has(id)) frames_.numbers.resize(tables_.stacks.frames().size(), not_written);
  std::uint32_t& known = frames_.numbers[id];
  if (known != not_written) return known;
  const Frame& frame = tables_.stacks.frames()[id];
  const std::uint64_t name = number_of(frame.name), file = number_of(frame.file);
  body_.clear();
  const bool in_kernel = frame.kind == Frame::Kind::kernel;
  const std::uint64_t flags = (frame.own_name ? raw::own_name : 0) | (in_kernel ? raw::in_kernel : 0);
  const Frame::Kind kind = in_kernel ? Frame::Kind::native : frame.kind;
  put(body_, static_cast<std::uint64_t>(kind) | (frame.line_is_near ? raw::line_is_near : 0) |
                 static_cast<std::uint64_t>(frame.part) << raw::part_shift);
  put(body_, name);
  put(body_, file);
  put(body_, static_cast<std::uint64_t>(std::max(frame.line_defined, 0)));
  put(body_, static_cast<std::uint64_t>(std::max(frame.line, 0)));
  if (frame.prototype != 0 || flags != 0) put(body_, std::uint64_t{frame.prototype});
  if (flags != 0) put(body_, flags);
  add_record(raw::frame, body_);
  return known = frames_.count++;
}

// Outer stacks come before those that they are part of. The empty stack is never written, and has number 0.
std::uint64_t RawWriter::number_of(StackId id) {
  if (!stacks_.numbers.has(id)) stacks_.numbers.resize(tables_.stacks.nodes().size(), not_written);
  chain_.clear();
  for (; id != empty_stack && stacks_.numbers[id] == not_written; id = tables_.stacks.nodes()[id].outer)
    chain_.push_back(id);
  std::uint64_t outer = id == empty_stack ? 0 : stacks_.numbers[id];
  for (; !chain_.empty(); chain_.pop_back()) {
    const std::uint64_t frame = number_of(tables_.stacks.nodes()[chain_.back()].frame);
    body_.clear();
    put(body_, outer);
    put(body_, frame);
    add_record(raw::stack, body_);
    outer = stacks_.numbers[chain_.back()] = ++stacks_.count;
  }
  return outer;
}

std::uint64_t RawWriter::number_of(ThreadId id) {
  if (!threads_.numbers.has(id)) threads_.numbers.resize(tables_.threads.size(), not_written);
  std::uint32_t& known = threads_.numbers[id];
  if (known != not_written) return known;
  const ThreadInfo& thread = tables_.threads[id];
  const std::uint64_t name = number_of(thread.name), process = number_of(thread.process);
  body_.clear();
  put(body_, std::int64_t{thread.tid});
  put(body_, std::int64_t{thread.pid});
  put(body_, name);
  put(body_, process);
  if (thread.program != 0 || thread.started != 0) {
    put(body_, thread.program);
    put(body_, thread.started);
  }
  add_record(raw::thread, body_);
  qualities_.emplace_back(), of_allocations_.emplace_back(), cpus_.push_back(-1);
  return known = threads_.count++;
}

// As for stacks, no_labels is never written, and has number 0.
std::uint64_t RawWriter::number_of(LabelsId id) {
  if (id == no_labels) return 0;
  if (!labels_.numbers.has(id)) labels_.numbers.resize(tables_.labels.size(), not_written);
  std::uint32_t& known = labels_.numbers[id];
  if (known != not_written) return known;
  const Labels& labels = tables_.labels[id];
  std::vector<std::uint64_t> numbers = {std::min(labels.size(), raw::most_labels)};
  for (std::size_t i = 0; i < numbers.front(); ++i) {
    numbers.push_back(number_of(labels[i].name));
    numbers.push_back(number_of(labels[i].value));
  }
  body_.clear();
  for (const std::uint64_t number : numbers) put(body_, number);
  add_record(raw::labels, body_);
  return known = ++labels_.count;
}

// The CPU samplers of several CPUs share one tick, but each has its own time.
void RawWriter::tick(const Tick& at) {
  const Tick tick{std::max(at.at_ns, tick_.at_ns), at.weight};
  if (tick.at_ns == tick_.at_ns && tick.weight == tick_.weight) return;
  idle_is_over();
  body_.clear();
  put(body_, std::max(tick.at_ns - tick_.at_ns, std::int64_t{0}));
  if (tick.weight != tick.at_ns - tick_.at_ns) put(body_, tick.weight);
  add_record(raw::tick, body_);
  tick_ = tick;
}

void RawWriter::sample(ThreadId id, const Tick& at, const Sample& sample) {
  const std::uint64_t thread = number_of(id), stack = number_of(sample.stack), labels = number_of(sample.labels);
  tick(at);
  const bool new_quality = sample.quality != qualities_[thread];
  qualities_[thread] = sample.quality;
  body_.clear();
  put(body_, thread);
  put(body_, (sample.state != Sample::State::running ? raw::asleep : 0) | facts_of(sample, new_quality));
  put(body_, stack);
  put_facts(sample, new_quality);
  // Fields at the end are left out, but not those before them.
  std::int16_t& cpu = cpus_[thread];
  const bool is_elsewhere = sample.cpu >= 0 && sample.cpu != cpu;
  if (is_elsewhere) cpu = sample.cpu;
  const bool has_cpu = is_elsewhere || labels != 0;
  if (sample.state == Sample::State::waiting || has_cpu)
    put(body_, sample.state == Sample::State::waiting ? raw::waits_for_cpu : std::uint64_t{0});
  if (has_cpu) put(body_, cpu >= 0 ? static_cast<std::uint64_t>(cpu) : raw::unknown_cpu);
  if (labels != 0) put(body_, labels);
  add_record(raw::sample, body_);
}

void RawWriter::lost(ThreadId id, const Tick& at, Loss loss, std::int64_t stopped_ns) {
  const std::uint64_t thread = number_of(id);
  tick(at);
  Sample facts;
  facts.stopped_ns = stopped_ns;
  body_.clear();
  put(body_, thread);
  put(body_, raw::has_loss | facts_of(facts, false));
  put(body_, static_cast<std::uint64_t>(loss));
  put_facts(facts, false);
  add_record(raw::sample, body_);
}

// It has its own time: a tick record would be one of the samples of time.
void RawWriter::allocation(ThreadId id, const Allocation& allocation, const Sample& sample) {
  const std::uint64_t thread = number_of(id), stack = number_of(sample.stack);
  const bool new_quality = sample.quality != of_allocations_[thread];
  of_allocations_[thread] = sample.quality;
  body_.clear();
  put(body_, thread);
  put(body_, facts_of(sample, new_quality));
  put(body_, stack);
  put(body_, std::max(allocation.at_ns - tick_.at_ns, std::int64_t{0}));
  put(body_, allocation.bytes);
  put(body_, allocation.objects);
  put_facts(sample, new_quality);
  add_record(raw::allocation, body_);
}

// As the flags have announced.
void RawWriter::put_facts(const Sample& facts, bool has_quality) {
  if (facts.stopped_ns != 0) put(body_, facts.stopped_ns);
  if (!has_quality) return;
  for (const auto number : quality_numbers) put(body_, facts.quality.*number);
}

void RawWriter::loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  body_.clear();
  put(body_, static_cast<std::uint64_t>(loss));
  put(body_, count);
  add_record(raw::loss, body_);
}

void RawWriter::idle(std::int64_t count) { idle_ += count; }

void RawWriter::waiting(std::int64_t count) {
  body_.clear();
  put(body_, count);
  add_record(raw::waiting, body_);
}

void RawWriter::state(const HeapChanges::State& state) {
  body_.clear();
  put(body_, std::int64_t{state.pid});
  put(body_, std::uint64_t{state.G});
  add_record(raw::state, body_);
  heap_bytes_.push_back(0);
}

void RawWriter::heap(const Tick& at, const HeapChange& change) {
  tick(at);
  const std::int64_t grown = change.bytes - std::exchange(heap_bytes_[change.state], change.bytes);
  body_.clear();
  put(body_, std::uint64_t{change.state});
  put(body_, static_cast<std::uint64_t>(change.phase) | (change.collected ? raw::has_collected : 0) |
                 (grown < 0 ? raw::has_shrunk : 0));
  put(body_, std::abs(grown));
  add_record(raw::heap, body_);
}

// It has a time of its own: a mark may be known later than ticks that came after it.
void RawWriter::mark(const Mark& mark) {
  const std::uint64_t file = number_of(mark.file), text = number_of(mark.text);
  body_.clear();
  put(body_, static_cast<std::uint64_t>(mark.kind));
  put(body_, mark.at_ns);
  put(body_, std::int64_t{mark.pid});
  put(body_, file);
  put(body_, static_cast<std::uint64_t>(std::max(mark.line, 0)));
  put(body_, mark.number);
  put(body_, text);
  add_record(raw::mark, body_);
}

// It has a time of its own, as a mark has.
void RawWriter::suspended(const SuspendedLook& look) {
  const std::uint64_t process = number_of(look.process);
  std::vector<std::uint64_t> numbers;
  for (const SuspendedGroup& group : look.groups) {
    numbers.push_back(group.number);
    numbers.push_back(number_of(group.stack));
    numbers.push_back(number_of(group.labels));
    numbers.push_back(static_cast<std::uint64_t>(group.count));
    numbers.push_back(static_cast<std::uint64_t>(group.longest_ns));
  }
  body_.clear();
  put(body_, look.at_ns);
  put(body_, look.weight_ns);
  put(body_, std::int64_t{look.pid});
  put(body_, look.program);
  put(body_, process);
  put(body_, look.state);
  put(body_, look.unread);
  put(body_, std::uint64_t{look.groups.size()});
  for (const std::uint64_t number : numbers) put(body_, number);
  add_record(raw::suspended, body_);
}

void RawWriter::source(const std::string& file, const Profile::Source& source) {
  std::string body;
  put(body, std::string_view(file));
  put(body, std::uint64_t{source.changed ? raw::is_changed : 0});
  add_record(raw::source, body + source.text);
}

void RawWriter::idle_is_over() {
  if (idle_ == 0) return;
  std::string body;
  put(body, std::exchange(idle_, 0));
  add_record(raw::idle, body);
}

void RawWriter::add_record(std::uint8_t type, const std::string& body) {
  if (block_.size() + body.size() > block_size) write_block();
  block_ += static_cast<char>(type);
  put(block_, std::uint64_t{body.size()});
  block_ += body;
}

void RawWriter::write_block() {
  if (block_.empty()) return;
  std::string head;
  put_u32(head, block_.size());
  put_u32(head, crc32(0, reinterpret_cast<const Bytef*>(block_.data()), static_cast<uInt>(block_.size())));
  out_ << head << block_;
  block_.clear();
}

void RawWriter::flush() {
  idle_is_over();
  write_block();
  out_.flush();
}

}  // namespace luaspy
