#include "output/raw.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

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

std::map<std::string, std::string> words(const About& about) {
  std::map<std::string, std::string> words = {{"luaspy", about.luaspy},
                                              {"command", about.command},
                                              {"executable", about.executable},
                                              {"pid", std::to_string(about.pid)},
                                              {"luas", fmt::format("{}", fmt::join(about.luas, "\n"))},
                                              {"lua_mapped", about.lua_mapped ? "1" : "0"},
                                              {"mode", about.mode},
                                              {"rate_hz", fmt::format("{}", about.rate)},
                                              {"max_stopped_percent", fmt::format("{}", about.max_stopped)},
                                              {"started_s", std::to_string(about.started_s)},
                                              {"duration_ns", std::to_string(about.duration_ns)},
                                              {"ticks", std::to_string(about.ticks)},
                                              {"complete", about.complete ? "1" : "0"}};
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

}  // namespace

RawWriter::RawWriter(const StackTable& stacks, const std::vector<Profile::Thread>& threads, Unit unit,
                     std::ostream& out)
    : stacks_(stacks), threads_(threads), out_(out) {
  out_ << raw::magic << static_cast<char>(raw::version);
  about(raw::unit_key, std::string(name(unit)));
}

void RawWriter::about(const About& about) {
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

// Writes the strings, frames, stacks and threads that are new since the last sample.
void RawWriter::catch_up() {
  const auto string = [&](const std::string& text) {
    const auto [place, added] = strings_.emplace(text, strings_.size());
    if (added) add_record(raw::string, text.substr(0, raw::longest_string));
    return place->second;
  };
  for (; frames_ < stacks_.frames().size(); ++frames_) {
    const Frame& frame = stacks_.frames()[frames_];
    const std::uint64_t name = string(frame.name), file = string(frame.file);
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
  }
  for (; nodes_ < stacks_.nodes().size(); ++nodes_) {
    body_.clear();
    put(body_, std::uint64_t{stacks_.nodes()[nodes_].outer});
    put(body_, std::uint64_t{stacks_.nodes()[nodes_].frame});
    add_record(raw::stack, body_);
  }
  for (; told_threads_ < threads_.size(); ++told_threads_) {
    const Profile::Thread& thread = threads_[told_threads_];
    const std::uint64_t name = string(thread.name), process = string(thread.process);
    body_.clear();
    put(body_, std::int64_t{thread.tid});
    put(body_, std::int64_t{thread.pid});
    put(body_, name);
    put(body_, process);
    add_record(raw::thread, body_);
    qualities_.emplace_back(), of_allocations_.emplace_back();
  }
}

// The stoppers of several CPUs share one tick, but each has its own time.
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

void RawWriter::sample(std::uint32_t thread, const Tick& at, const Sample& facts, StackTable::StackId stack) {
  catch_up();
  tick(at);
  const bool is_stack = facts.loss == Loss::none, new_quality = is_stack && facts.quality != qualities_[thread];
  body_.clear();
  put(body_, std::uint64_t{thread});
  put(body_, (facts.state != Sample::State::running ? raw::asleep : 0) | (facts.stopped_ns != 0 ? raw::has_stop : 0) |
                 (new_quality ? raw::has_quality : 0) | (is_stack ? 0 : raw::has_loss) |
                 static_cast<std::uint64_t>(facts.vm_state) << raw::vm_state_shift);
  if (is_stack) put(body_, std::uint64_t{stack});
  else put(body_, static_cast<std::uint64_t>(facts.loss));
  if (new_quality) qualities_[thread] = facts.quality;
  put_facts(facts, new_quality);
  add_record(raw::sample, body_);
}

// It has its own time: a tick record would be one of the samples of time.
void RawWriter::allocation(std::uint32_t thread, const Allocation& allocation, const Sample& facts,
                           StackTable::StackId stack) {
  catch_up();
  const bool new_quality = facts.quality != of_allocations_[thread];
  of_allocations_[thread] = facts.quality;
  body_.clear();
  put(body_, std::uint64_t{thread});
  put(body_, (facts.stopped_ns != 0 ? raw::has_stop : 0) | (new_quality ? raw::has_quality : 0) |
                 static_cast<std::uint64_t>(facts.vm_state) << raw::vm_state_shift);
  put(body_, std::uint64_t{stack});
  put(body_, std::max(allocation.at_ns - tick_.at_ns, std::int64_t{0}));
  put(body_, allocation.bytes);
  put(body_, allocation.objects);
  put_facts(facts, new_quality);
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
