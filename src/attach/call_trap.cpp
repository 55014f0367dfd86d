#include "attach/call_trap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "attach/trap_refusal.h"
#include "system/kernel_registers.h"

namespace luaspy {
namespace {

constexpr std::size_t ring_pages = 32;  // 2^n: more than most_calls records

perf_event_attr attributes(Address address) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = address;
  attributes.bp_len = sizeof(long);
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;  // system::Clock's
  return attributes;
}

// The event that notes each call, and decides for both whether they are armed.
perf_event_attr noting(Address address) {
  perf_event_attr noting = attributes(address);
  noting.disabled = 1;
  noting.sample_period = 1;
  noting.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
  for (const auto& each : system::perf_registers()) {
    if (std::ranges::find(own_machine().first_arguments, each.number) != own_machine().first_arguments.end())
      noting.sample_regs_user |= std::uint64_t{1} << each.bit;
  }
  noting.watermark = 1;
  noting.wakeup_watermark = 1u << 31;  // so high that it wakes nobody
  return noting;
}

perf_event_attr counting(Address address) {
  perf_event_attr counting = attributes(address);
  counting.sample_period = CallTrap::most_calls;  // until set_number()
  counting.sample_type = PERF_SAMPLE_TIME;
  counting.wakeup_events = 1;
  return counting;
}

// Where it is set is changed later: then all else has to be as the kernel has it (kernel/events/
// hw_breakpoint.c, modify_user_hw_breakpoint_check), with what it sets by itself if it is 0.
perf_event_attr returning(Address address) {
  perf_event_attr returning = attributes(address);
  returning.disabled = 1;
  returning.sample_period = 1;
  returning.sample_type = PERF_SAMPLE_TIME;
  returning.wakeup_events = 1;
  returning.sample_max_stack = 1;
  return returning;
}

// A set of signals in /proc/TID/status (proc(5)); all of them if it cannot be read.
std::uint64_t signals(std::string_view status, std::string_view key) {
  std::uint64_t set = ~std::uint64_t{0};
  const std::size_t at = status.find(key);
  if (at != status.npos) std::from_chars(status.data() + at + key.size(), status.data() + status.size(), set, 16);
  return set;
}

// signal(7): ignored by a process that has not asked for it. A thread that blocks it would not stop,
// and the signal would stay pending. 0: the thread handles or blocks all of these.
int unused_signal(pid_t tid) {
  const std::string status = system::read_file(fmt::format("/proc/{}/status", tid)).value_or("");
  const std::uint64_t used = signals(status, "\nSigCgt:\t") | signals(status, "\nSigBlk:\t");
  for (const int signal : {SIGURG, SIGWINCH}) {
    if ((used >> (signal - 1) & 1) == 0) return signal;
  }
  return 0;
}

class PerfCallTrap : public CallTrap {
 public:
  static Result<std::unique_ptr<CallTrap>> open(pid_t tid, Address address);
  ~PerfCallTrap() override;

  int signal() const override { return signal_; }
  void set_number(std::int64_t number) override;
  bool arm() override;
  void disarm() override;
  bool arm_return(Address address) override;
  void disarm_return() override;
  const std::vector<Call>& calls() override;
  bool has_calls() const override { return head() != begin_; }

 private:
  std::uint64_t head() const;
  std::uint64_t word(std::uint64_t place) const;
  std::byte* map(const FileDescriptor& event, std::size_t pages) const;
  void open_return(pid_t tid, Address address);

  FileDescriptor noting_, counting_, returning_;
  std::byte *ring_ = nullptr, *unused_ring_ = nullptr, *return_ring_ = nullptr;
  std::size_t page_ = 0;     // bytes
  std::uint64_t begin_ = 0;  // of what was noted since arm()
  int signal_ = 0;
  std::vector<Call> calls_;
};

Result<std::unique_ptr<CallTrap>> PerfCallTrap::open(pid_t tid, Address address) {
  auto trap = std::make_unique<PerfCallTrap>();
  trap->signal_ = unused_signal(tid);
  if (trap->signal_ == 0)
    return Error{Cause::unsupported,
                 "The program handles or blocks both signals that luaspy could use to stop it at an allocation (SIGURG "
                 "and SIGWINCH). luaspy heap --every needs none."};
  system::Failure failure;
  trap->noting_ = system::open_perf_event(noting(address), tid, -1, failure);
  if (trap->noting_) trap->counting_ = system::open_perf_event(counting(address), tid, trap->noting_.number(), failure);
  if (!trap->counting_) return explain_no_trap(failure);
  trap->page_ = system::page_size();
  trap->ring_ = trap->map(trap->noting_, ring_pages);
  // Without a ring buffer, an event sends no signal.
  trap->unused_ring_ = trap->map(trap->counting_, 1);
  if (trap->ring_ == nullptr || trap->unused_ring_ == nullptr)
    return Error{Cause::permission,
                 "The kernel gives luaspy no more memory for perf events (kernel.perf_event_mlock_kb). Run luaspy as "
                 "root. luaspy heap --every needs none."};
  if (const system::Failure signals = system::send_signal_when_ready(trap->counting_, trap->signal_, tid))
    return explain_no_trap(signals);
  trap->open_return(tid, address);
  return std::unique_ptr<CallTrap>(std::move(trap));
}

std::byte* PerfCallTrap::map(const FileDescriptor& event, std::size_t pages) const {
  void* const mapped = ::mmap(nullptr, (1 + pages) * page_, PROT_READ | PROT_WRITE, MAP_SHARED, event.number(), 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// A program or a debugger may use the debug registers that are left: then there is none for this.
void PerfCallTrap::open_return(pid_t tid, Address address) {
  system::Failure failure;
  returning_ = system::open_perf_event(returning(address), tid, -1, failure);
  if (!returning_) return;
  return_ring_ = map(returning_, 1);
  if (return_ring_ == nullptr || system::send_signal_when_ready(returning_, signal_, tid)) returning_ = {};
}

PerfCallTrap::~PerfCallTrap() {
  if (ring_ != nullptr) ::munmap(ring_, (1 + ring_pages) * page_);
  for (std::byte* const ring : {unused_ring_, return_ring_}) {
    if (ring != nullptr) ::munmap(ring, 2 * page_);
  }
}

void PerfCallTrap::set_number(std::int64_t number) {
  std::uint64_t period = static_cast<std::uint64_t>(std::clamp<std::int64_t>(number, 1, most_calls));
  ::ioctl(counting_.number(), PERF_EVENT_IOC_PERIOD, &period);  // fails only if the event is gone
}

bool PerfCallTrap::arm() {
  auto* const page = reinterpret_cast<perf_event_mmap_page*>(ring_);
  begin_ = head();
  __atomic_store_n(&page->data_tail, begin_, __ATOMIC_RELEASE);
  calls_.clear();
  return ::ioctl(noting_.number(), PERF_EVENT_IOC_ENABLE, 0) == 0;
}

void PerfCallTrap::disarm() { ::ioctl(noting_.number(), PERF_EVENT_IOC_DISABLE, 0); }

bool PerfCallTrap::arm_return(Address address) {
  if (!returning_) return false;
  perf_event_attr attributes = returning(address);
  attributes.disabled = 0;
  if (::ioctl(returning_.number(), PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attributes) == 0) return true;
  returning_ = {};  // before Linux 4.17
  return false;
}

void PerfCallTrap::disarm_return() {
  if (returning_) ::ioctl(returning_.number(), PERF_EVENT_IOC_DISABLE, 0);
}

std::uint64_t PerfCallTrap::head() const {
  return __atomic_load_n(&reinterpret_cast<const perf_event_mmap_page*>(ring_)->data_head, __ATOMIC_ACQUIRE);
}

std::uint64_t PerfCallTrap::word(std::uint64_t place) const {
  return load<std::uint64_t>({ring_ + page_, ring_pages * page_}, place & (ring_pages * page_ - 1));
}

// PERF_RECORD_SAMPLE: a header (linux/perf_event.h) whose upper 16 bits are the record's bytes; then
// the time, which registers these are, and the registers in the order of their bits.
const std::vector<CallTrap::Call>& PerfCallTrap::calls() {
  calls_.clear();
  const std::uint64_t end = head();
  for (std::uint64_t place = begin_; place < end && calls_.size() < static_cast<std::size_t>(most_calls);) {
    const std::uint64_t header = word(place), size = header >> 48;
    if (size == 0) break;
    if ((header & 0xffffffff) == PERF_RECORD_SAMPLE && word(place + 16) == PERF_SAMPLE_REGS_ABI_64) {
      Call call;
      call.at = system::Clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(word(place + 8))));
      std::uint64_t next = place + 24;
      for (const auto& each : system::perf_registers()) {
        const auto argument = std::ranges::find(own_machine().first_arguments, each.number);
        if (argument == own_machine().first_arguments.end()) continue;
        call.arguments[static_cast<std::size_t>(argument - own_machine().first_arguments.begin())] = word(next);
        next += 8;
      }
      calls_.push_back(call);
    }
    place += size;
  }
  return calls_;
}

}  // namespace

Result<std::unique_ptr<CallTrap>> CallTrap::open(pid_t tid, Address address) {
  return PerfCallTrap::open(tid, address);
}

}  // namespace luaspy
