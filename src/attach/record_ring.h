#pragma once
// The newest records of a perf event: what the kernel logs in a ring buffer that it overwrites (perf_event_open(2),
// attr.write_backward). It fills the ring downwards, so that the newest record is always the one at the head, whole.

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy {

// A record's first word (linux/perf_event.h, perf_event_header).
struct RecordHeader {
  std::uint32_t type;
  std::uint16_t misc, size;  // size: bytes, with these
};

// The records of a ring of `size` bytes, a power of two, of which the newest begins at `head`. Records consist of
// whole words, and may wrap around to the beginning of the ring. The kernel may write while they are read.
struct RecordView {
  const std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::uint64_t head = 0;  // 0: there is none; the first record ends at position 0

  std::uint64_t word(std::uint64_t place) const {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bytes + (place & (size - 1))), __ATOMIC_RELAXED);
  }
  RecordHeader header(std::uint64_t place) const;
};

class RecordRing {
 public:
  // What all events have in common whose records are logged so: a software clock or counter, times of system::Clock,
  // nobody is woken.
  static perf_event_attr attributes(std::uint64_t config);
  // Of one thread (`cpu`: -1), or of one CPU (`tid`: -1). nullopt: the kernel does not allow it, or the thread is gone
  // (`failure` says which), or it has no memory for it (no failure: kernel.perf_event_mlock_kb).
  static std::optional<RecordRing> open(const perf_event_attr& attributes, pid_t tid, int cpu,
                                        system::Failure& failure);
  RecordRing(RecordRing&& other) noexcept;
  RecordRing& operator=(RecordRing&&) = delete;
  ~RecordRing();

  const FileDescriptor& event() const { return event_; }
  std::uint64_t head() const;
  RecordView view() const { return {bytes_ + page_, page_, head()}; }
  // Whether nothing has been logged since that view.
  bool is_newest(const RecordView& view) const { return head() == view.head; }

 private:
  RecordRing(FileDescriptor event, const std::byte* bytes, std::size_t page)
      : event_(std::move(event)), bytes_(bytes), page_(page) {}

  FileDescriptor event_;
  const std::byte* bytes_;  // a page that says where the newest record is, then a page of records
  std::size_t page_;        // bytes
};

}  // namespace luaspy
