#include "attach/record_ring.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace luaspy {

RecordHeader RecordView::header(std::uint64_t place) const {
  const std::uint64_t first = word(place);
  RecordHeader header;
  static_assert(sizeof header == sizeof first);
  std::memcpy(&header, &first, sizeof header);
  return header;
}

perf_event_attr RecordRing::attributes(std::uint64_t config) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = config;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;  // system::Clock's
  attributes.write_backward = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1u << 31;  // so high that it wakes nobody
  return attributes;
}

std::optional<RecordRing> RecordRing::open(const perf_event_attr& attributes, pid_t tid, int cpu,
                                           system::Failure& failure) {
  FileDescriptor event = system::open_perf_event(attributes, tid, -1, failure, cpu);
  if (!event) return std::nullopt;
  const auto page = system::page_size();
  // Not writable: the kernel overwrites what is old.
  void* const mapped = ::mmap(nullptr, 2 * page, PROT_READ, MAP_SHARED, event.number(), 0);
  if (mapped == MAP_FAILED) return std::nullopt;
  return RecordRing(std::move(event), static_cast<const std::byte*>(mapped), page);
}

RecordRing::RecordRing(RecordRing&& other) noexcept
    : event_(std::move(other.event_)), bytes_(std::exchange(other.bytes_, nullptr)), page_(other.page_) {}

RecordRing::~RecordRing() {
  if (bytes_ != nullptr) ::munmap(const_cast<std::byte*>(bytes_), 2 * page_);
}

// The head moves downwards.
std::uint64_t RecordRing::head() const {
  const auto* const page = reinterpret_cast<const perf_event_mmap_page*>(bytes_);
  return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

}  // namespace luaspy
