#include "attach/births.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/words.h"

namespace luaspy {
namespace {

constexpr std::size_t pages_a_ring = 16;  // 2^n: some 1,300 births between two looks
constexpr std::size_t most_events = 1024;

perf_event_attr birth_attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.task = 1;       // FORK and EXIT
  attributes.comm = 1;       // COMM, with
  attributes.comm_exec = 1;  // a bit that tells an exec
  attributes.inherit = 1;
  attributes.inherit_stat = 1;  // READ, when one that has inherited it ends
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;  // system::Clock's
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1;  // byte: at once
  return attributes;
}

// "0-3,8": the CPUs that there are now (Documentation/ABI/testing/sysfs-devices-system-cpu).
std::vector<int> online_cpus() {
  constexpr int most = 4096;
  std::vector<int> cpus;
  const std::string text = system::read_file("/sys/devices/system/cpu/online").value_or("");
  for (std::string_view rest = std::string_view(text).substr(0, text.find('\n')); !rest.empty();) {
    const std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(range.size() + 1, rest.size()));
    const std::size_t dash = range.find('-');
    const int first = number<int>(range.substr(0, dash)),
              last = dash == range.npos ? first : number<int>(range.substr(dash + 1));
    for (int cpu = first; cpu <= last && cpu < most; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

FileDescriptor open_event(const perf_event_attr& attributes, pid_t tid, int cpu) {
  system::Failure failure;
  return system::open_perf_event(attributes, tid, -1, failure, cpu);
}

// linux/perf_event.h, PERF_RECORD_FORK, _EXIT, _COMM and _READ: the header, then what follows; the time is the last
// field, by sample_id_all.
constexpr std::size_t header_size = 8;
struct Task {
  std::uint32_t pid, ppid, tid, ptid;
  std::uint64_t time;
};
struct Comm {
  std::uint32_t pid, tid;
};
struct Read {
  std::uint32_t pid, tid;
  std::uint64_t value, time;
};

}  // namespace

std::unique_ptr<Births> Births::open() {
  std::unique_ptr<Births> births(new Births);
  births->page_ = system::page_size();
  perf_event_attr nothing = birth_attributes();
  nothing.config = PERF_COUNT_SW_DUMMY;
  nothing.task = nothing.comm = nothing.comm_exec = nothing.inherit = nothing.inherit_stat = 0;
  for (const int cpu : online_cpus()) {
    Ring ring{cpu, open_event(nothing, ::gettid(), cpu)};
    if (!ring.event) return nullptr;
    void* const mapped = ::mmap(nullptr, (1 + pages_a_ring) * births->page_, PROT_READ | PROT_WRITE, MAP_SHARED,
                                ring.event.number(), 0);
    if (mapped == MAP_FAILED) return nullptr;  // kernel.perf_event_mlock_kb
    ring.bytes = static_cast<std::byte*>(mapped);
    births->rings_.push_back(std::move(ring));
  }
  return births->rings_.empty() ? nullptr : std::move(births);
}

Births::~Births() {
  for (const Ring& ring : rings_) ::munmap(ring.bytes, (1 + pages_a_ring) * page_);
}

bool Births::watch(std::span<const pid_t> tids) {
  bool all = true;
  for (const pid_t tid : tids) {
    for (const Ring& ring : rings_) {
      if (events_.size() >= most_events) return false;
      FileDescriptor event = open_event(birth_attributes(), tid, ring.cpu);
      all = all && event && ::ioctl(event.number(), PERF_EVENT_IOC_SET_OUTPUT, ring.event.number()) == 0;
      if (event) events_.push_back(std::move(event));
    }
  }
  return all;
}

void Births::wait(system::Clock::time_point until) {
  std::vector<pollfd> files;
  for (const Ring& ring : rings_) files.push_back({ring.event.number(), POLLIN, 0});
  const std::int64_t left = system::to_ns(until - system::Clock::now());
  if (left > 0) system::wait_for_files(files, left);
}

bool Births::drain(const std::function<void(const Birth&)>& handle) {
  std::vector<Birth> births;
  bool all = true;
  for (Ring& ring : rings_) all = read(ring, births) && all;
  std::ranges::stable_sort(births, {}, &Birth::at);
  for (const Birth& birth : births) handle(birth);
  return all;
}

bool Births::read(Ring& ring, std::vector<Birth>& into) const {
  auto* const page = reinterpret_cast<perf_event_mmap_page*>(ring.bytes);
  const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), size = pages_a_ring * page_;
  bool all = true;
  std::array<std::byte, 256> record;
  for (std::uint64_t at = page->data_tail; at + header_size <= head;) {
    const auto copy = [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) record[i] = ring.bytes[page_ + ((at + i) & (size - 1))];
    };
    copy(header_size);
    perf_event_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.size < header_size) break;
    copy(std::min<std::size_t>(header.size, record.size()));
    at += header.size;
    const auto value = [&]<typename T>(T, std::size_t offset) {
      T found;
      std::memcpy(&found, record.data() + offset, sizeof found);
      return found;
    };
    if (header.type == PERF_RECORD_LOST) all = false;
    if (header.size > record.size() || header.size < header_size + sizeof(Comm)) continue;
    const std::uint64_t time = value(std::uint64_t{}, header.size - sizeof(std::uint64_t));
    if ((header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT) &&
        header.size >= header_size + sizeof(Task)) {
      const Task task = value(Task{}, header_size);
      const auto pid = static_cast<pid_t>(task.pid), parent = static_cast<pid_t>(task.ppid);
      const bool is_thread = pid == parent;
      const Birth::Kind kind = header.type == PERF_RECORD_EXIT ? Birth::Kind::thread_end
                               : is_thread                     ? Birth::Kind::thread
                                                               : Birth::Kind::process;
      into.push_back({kind, pid, static_cast<pid_t>(task.tid), parent, 0, time});
    } else if (header.type == PERF_RECORD_COMM && (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0) {
      const Comm comm = value(Comm{}, header_size);
      into.push_back({Birth::Kind::exec, static_cast<pid_t>(comm.pid), static_cast<pid_t>(comm.tid), 0, 0, time});
    } else if (header.type == PERF_RECORD_READ && header.size >= header_size + sizeof(Read)) {
      const Read read = value(Read{}, header_size);
      into.push_back({Birth::Kind::cpu_time, static_cast<pid_t>(read.pid), static_cast<pid_t>(read.tid), 0,
                      static_cast<std::int64_t>(read.value), time});
    }
  }
  __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
  return all;
}

}  // namespace luaspy
