#include "attach/switch_log.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "system/kernel_registers.h"

namespace luaspy {
namespace {

// A record's header (linux/perf_event.h): its type, its flags, its bytes.
struct Header {
  std::uint32_t type;
  std::uint16_t misc, size;
};
Header header_of(std::uint64_t word) {
  Header header;
  static_assert(sizeof header == sizeof word);
  std::memcpy(&header, &word, sizeof header);
  return header;
}

perf_event_attr attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER;
  for (const auto& each : system::perf_registers()) attributes.sample_regs_user |= std::uint64_t{1} << each.bit;
  attributes.context_switch = 1;  // PERF_RECORD_SWITCH, after the sample
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;  // system::Clock's
  attributes.write_backward = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1u << 31;  // so high that it wakes nobody
  return attributes;
}

}  // namespace

std::unique_ptr<SwitchLog> SwitchLog::open(pid_t tid) {
  perf_event_attr wanted = attributes();
  std::unique_ptr<SwitchLog> log(new SwitchLog);
  log->event_ = FileDescriptor(
      static_cast<int>(::syscall(SYS_perf_event_open, &wanted, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!log->event_) return nullptr;
  log->page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Not writable: the kernel overwrites what is old.
  void* const mapped = ::mmap(nullptr, 2 * log->page_, PROT_READ, MAP_SHARED, log->event_.number(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  log->ring_ = static_cast<const std::byte*>(mapped);
  return log;
}

SwitchLog::~SwitchLog() {
  if (ring_ != nullptr) ::munmap(const_cast<std::byte*>(ring_), 2 * page_);
}

// The head moves downwards: the newest record is at the lowest position.
std::uint64_t SwitchLog::head() const {
  const auto* const page = reinterpret_cast<const perf_event_mmap_page*>(ring_);
  return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

// Records consist of whole words, and may wrap around to the beginning of the ring.
std::uint64_t SwitchLog::word(std::uint64_t place) const {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(ring_ + page_ + (place & (page_ - 1))),
                         __ATOMIC_RELAXED);
}

// PERF_RECORD_SWITCH: the header; then, by sample_type, the time and the CPU.
SwitchLog::Switch SwitchLog::last() const {
  constexpr int tries = 4;
  for (int i = 0; i < tries; ++i) {
    Switch last;
    last.place = head();
    if (last.place == 0) return last;
    const Header header = header_of(word(last.place));
    const std::uint64_t time = word(last.place + 8), cpu = word(last.place + 16);
    if (!is_last(last)) continue;  // it is just being switched
    if (header.type != PERF_RECORD_SWITCH) continue;
    const bool is_out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
               could_run = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    last.kind = !is_out ? Switch::Kind::given : could_run ? Switch::Kind::taken : Switch::Kind::given_up;
    last.at = system::Clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
    last.cpu = static_cast<int>(static_cast<std::uint32_t>(cpu));
    return last;
  }
  return {};
}

// PERF_RECORD_SAMPLE, noted right before: time, CPU, which registers these are, the registers.
std::optional<Registers> SwitchLog::registers(const Switch& lost, bool& at_system_call) const {
  const std::uint64_t sample = lost.place + header_of(word(lost.place)).size;
  constexpr std::uint64_t values = 4 * 8;
  const Header header = header_of(word(sample));
  const std::span noted = system::perf_registers();
  if (header.type != PERF_RECORD_SAMPLE || header.size != values + 8 * noted.size()) return std::nullopt;
  if (word(sample + 24) != PERF_SAMPLE_REGS_ABI_64) return std::nullopt;
  Registers registers;
  for (std::size_t i = 0; i < noted.size(); ++i) registers.set(noted[i].number, word(sample + values + 8 * i));
  if (!is_last(lost)) return std::nullopt;
  at_system_call = system::is_after_system_call(registers);
  return registers;
}

}  // namespace luaspy
