#pragma once
// The memory that was read from a target during one stop. While the snapshot is open, a read that
// it cannot answer goes to the target, and the page is kept. Once it is closed (the thread runs
// again), such a read fails. Everything in it is from one instant.
//
// The places that one stop needed are nearly always those that the next one needs (the stack's top,
// the CallInfo nodes, the Lua stack), so they are fetched in one batch at the start. A wrong
// prediction costs a read, never correctness.

#include <algorithm>
#include <array>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class Snapshot : public Memory {
 public:
  static constexpr std::size_t page_size = smallest_page;
  static constexpr std::size_t block_size = 64;  // use of a page is recorded in blocks

  // Which blocks of a page were used recently: bit i is block i.
  struct Used {
    Address page = 0;
    std::uint64_t now = 0, before = 0;
  };
  using Prediction = std::vector<Used>;  // ascending

  explicit Snapshot(const Memory& target) : target_(&target) {}

  // Forgets everything and opens the snapshot for a new stop. Reads `stack` … `stack + stack_bytes`
  // and the predicted blocks at once. Also reads `red_zone` bytes below `stack` (Machine), as far as
  // they are in the same page: a function's epilogue may have popped registers from there already.
  // If the stack range cannot be read to its end, its readable beginning is kept: the mapping of a
  // thread's stack may continue beyond a guard page.
  void open(Address stack, std::size_t stack_bytes, const Prediction& predicted, std::size_t red_zone = 0);
  void close() { open_ = false; }

  bool read(Address address, std::span<std::byte> into) const override;
  void prefetch(Address address, std::size_t size) const override;
  // Does not keep what it reads: these are candidates for a lua_State, looked at once, and most are
  // never read again.
  void read_batch(std::span<Request> requests) const override;

  // Updates a prediction with the blocks outside of the stack range that were used since open(). A
  // block that is no longer used stays in it for one more look.
  void predict(Prediction& prediction) const;
  // The part of the stack range that could be read. Not a copy.
  Address stack_start() const { return stack_start_; }
  std::span<const std::byte> stack() const { return {stack_.data() + red_zone_, stack_size_}; }

 private:
  struct Page {
    Address address;
    // Where the page's first byte is in pool_, or would be: a range may begin inside its first
    // page. Modulo 2^64.
    std::size_t offset;
    std::uint64_t valid;  // blocks that were read
    mutable std::uint64_t used = 0;
  };
  void add_range(Address start, Address end);
  Page* find(Address page) const;
  Page* provide(Address page, std::uint64_t blocks) const;
  std::byte* room(std::size_t size) const;  // `size` more bytes of the pool
  bool read_piece(Address address, std::span<std::byte> into) const;

  const Memory* target_;
  bool open_ = false;
  std::size_t red_zone_ = 0;
  std::size_t below_ = 0;  // bytes read below stack_start_
  Address stack_start_ = 0;
  std::size_t stack_size_ = 0;
  std::vector<std::byte> stack_;     // starts red_zone_ bytes below stack_start_
  mutable std::vector<Page> pages_;  // ascending
  mutable std::size_t last_ = 0;     // index into pages_: the page found last
  mutable std::vector<std::byte> pool_;
  mutable std::size_t used_ = 0;  // bytes used of pool_
  mutable std::vector<Request> requests_;
};

// Answers from the snapshot, and from memory read later where the snapshot has nothing. Meant for
// objects that do not change while they live.
class SnapshotThenLater : public Memory {
 public:
  SnapshotThenLater(const Memory& snapshot, const Memory& later) : snapshot_(snapshot), later_(later) {}
  bool read(Address address, std::span<std::byte> into) const override {
    return snapshot_.read(address, into) || later_.read(address, into);
  }
  void prefetch(Address address, std::size_t size) const override {
    std::array<std::byte, 512> bytes;
    for (std::size_t at = 0; at < size; at += bytes.size()) {
      const std::size_t count = std::min(size - at, bytes.size());
      if (!snapshot_.read(address + at, std::span(bytes).first(count))) later_.prefetch(address + at, count);
    }
  }

 private:
  const Memory& snapshot_;
  const Memory& later_;
};

}  // namespace luaspy
