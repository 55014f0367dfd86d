#include "attach/kernel_log.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace luaspy {

using system::Clock;
using system::to_ns;

namespace {

constexpr std::uint64_t long_time = 3'600'000'000'000;  // ns

perf_event_attr attributes() {
  perf_event_attr attributes = RecordRing::attributes(PERF_COUNT_SW_CPU_CLOCK);
  attributes.sample_period = long_time;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  attributes.sample_max_stack = KernelChain::most;
  attributes.exclude_user = attributes.exclude_hv = attributes.exclude_idle = 1;
  attributes.exclude_callchain_user = 1;
  return attributes;
}

// A PERF_RECORD_SAMPLE (linux/perf_event.h), in the order of sample_type.
struct Fields {
  RecordHeader header;
  std::uint32_t pid, tid;
  std::uint64_t time, count;  // count: of the addresses that follow
};
static_assert(sizeof(Fields) == 32);

Fields fields_at(const RecordView& records, std::uint64_t place) {
  std::array<std::uint64_t, sizeof(Fields) / 8> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = records.word(place + 8 * i);
  Fields fields;
  std::memcpy(&fields, words.data(), sizeof fields);
  return fields;
}

}  // namespace

std::unique_ptr<KernelLog> KernelLog::open(int cpu, system::Failure& failure) {
  constexpr pid_t every_thread = -1;
  std::optional<RecordRing> ring = RecordRing::open(attributes(), every_thread, cpu, failure);
  if (!ring) return nullptr;
  return std::unique_ptr<KernelLog>(new KernelLog(*std::move(ring)));
}

// Where a period is set, the clock begins again with it (kernel/events/core.c, __perf_event_period()). After it has
// expired it continues with the same period, which the next call changes.
void KernelLog::set_period(std::uint64_t ns) { (void)::ioctl(ring_.event().number(), PERF_EVENT_IOC_PERIOD, &ns); }

// It must not expire after the CPU sampler's own timer: the CPU sampler would be the thread that is interrupted. What
// the call itself takes until the clock begins makes the lead shorter.
void KernelLog::expect(Clock::time_point due) {
  constexpr std::int64_t lead = 3'000, shortest = 10'000;  // ns; shortest: the kernel makes no shorter one
  set_period(static_cast<std::uint64_t>(std::max(to_ns(due - Clock::now()) - lead, shortest)));
}

void KernelLog::pause() { set_period(long_time); }

void KernelLog::at(Clock::time_point due, pid_t tid, KernelChain& chain) const {
  constexpr std::int64_t early = 20'000;  // ns: more than the lead
  const std::int64_t from = to_ns(due.time_since_epoch()) - early;
  constexpr int tries = 3;
  for (int i = 0; i < tries; ++i) {
    const RecordView records = ring_.view();
    find(records, static_cast<std::uint64_t>(from), tid, chain);
    if (ring_.is_newest(records)) return;
  }
  chain.clear();  // it is written all the time
}

// The first record since the tick was due is the tick's. If the CPU sampler got its CPU late, because the thread stayed
// in the kernel, later ones follow.
void KernelLog::find(const RecordView& records, std::uint64_t from_ns, pid_t tid, KernelChain& chain) {
  chain.clear();
  std::uint64_t place = records.head, first = 0;
  while (place != 0) {
    const Fields fields = fields_at(records, place);
    const std::size_t size = fields.header.size;
    const bool whole = size >= sizeof fields && size % 8 == 0 && place + size - records.head <= records.size;
    if (!whole || fields.header.type == 0) break;  // it was overwritten
    if (fields.header.type == PERF_RECORD_SAMPLE) {
      if (fields.time < from_ns) break;
      if (fields.tid == static_cast<std::uint32_t>(tid) && fields.count <= (size - sizeof fields) / 8) first = place;
      else first = 0;
    }
    place += size;
  }
  if (first == 0) return;
  const std::uint64_t count = fields_at(records, first).count;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 2 * KernelChain::most); ++i) {
    const std::uint64_t address = records.word(first + sizeof(Fields) + 8 * i);
    if (address < PERF_CONTEXT_MAX) chain.add(address);  // larger ones say whose addresses follow
  }
}

}  // namespace luaspy
