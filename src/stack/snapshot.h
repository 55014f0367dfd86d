#pragma once
// What was read of a target during one stop. While it is open, a read that it cannot answer goes to
// the target and is kept, a page at a time; once it is closed (the thread runs again) such a read
// fails. All that it holds is of one instant.
//
// The places that one stop needed are nearly always those that the next one needs (the stack's top,
// the CallInfo nodes, the Lua stack), so they are fetched in one batch at the start. A wrong
// prediction costs a read, never a wrong byte.

#include <algorithm>
#include <array>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class Snapshot : public Memory {
 public:
  static constexpr std::size_t page_size = 4096;
  static constexpr std::size_t block_size = 64;  // what is used of a page is noted in blocks

  // Which blocks of a page were used lately: bit i is block i.
  struct Used {
    Address page = 0;
    std::uint64_t now = 0, before = 0;
  };
  using Prediction = std::vector<Used>;  // ascending

  explicit Snapshot(const Memory& target) : target_(&target) {}

  // Forgets everything and opens it for a new stop. `stack` … `stack + stack_bytes`, and what is
  // predicted, are read at once; and some bytes below `stack`, where registers are that a
  // function's end has taken from the stack already. Of a stack range that cannot be read to its
  // end the readable beginning is kept: what a mapping says of a thread's stack may go on beyond a
  // guard page.
  void open(Address stack, std::size_t stack_bytes, const Prediction& predicted);
  void close() { open_ = false; }

  bool read(Address address, std::span<std::byte> into) const override;
  void touch(Address address, std::size_t size) const override;
  // Places that are looked at once (candidates for a lua_State) are not kept: most of them are
  // never read again.
  void read_batch(std::span<Request> requests) const override;

  // Brings a prediction up to date: what is used outside of the stack range since open(). What is
  // not used any more stays for some looks.
  void predict(Prediction& prediction) const;
  // The part of the stack range that could be read, without a copy.
  Address stack_start() const { return stack_start_; }
  std::span<const std::byte> stack() const { return {stack_.data() + red_zone, stack_size_}; }

 private:
  struct Page {
    Address address;
    std::size_t offset;   // where its first byte is in pool_, or would be: ranges lie there side by side. Modulo 2^64.
    std::uint64_t valid;  // blocks that were read
    mutable std::uint64_t used = 0;
  };
  void add_range(Address start, Address end);
  Page* find(Address page) const;
  Page* provide(Address page, std::uint64_t blocks) const;
  std::byte* room(std::size_t size) const;  // `size` more bytes of the pool
  bool read_piece(Address address, std::span<std::byte> into) const;

  const Memory* target_;
  static constexpr std::size_t red_zone = 128;  // System V x86-64 ABI, 3.2.2
  bool open_ = false;
  std::size_t below_ = 0;  // bytes read below stack_start_
  Address stack_start_ = 0;
  std::size_t stack_size_ = 0;
  std::vector<std::byte> stack_ = std::vector<std::byte>(red_zone);  // from red_zone bytes below stack_start_ on
  mutable std::vector<Page> pages_;                                  // ascending
  mutable std::size_t last_ = 0;                                     // index into pages_: the one found last
  mutable std::vector<std::byte> pool_;
  mutable std::size_t used_ = 0;  // bytes of pool_
  mutable std::vector<Request> requests_;
};

// What a snapshot has, and where it has nothing, what was read later: for objects that do not
// change while they live.
class SnapshotThenLater : public Memory {
 public:
  SnapshotThenLater(const Memory& snapshot, const Memory& later) : snapshot_(snapshot), later_(later) {}
  bool read(Address address, std::span<std::byte> into) const override {
    return snapshot_.read(address, into) || later_.read(address, into);
  }
  void touch(Address address, std::size_t size) const override {
    std::array<std::byte, 512> bytes;
    for (std::size_t at = 0; at < size; at += bytes.size()) {
      const std::size_t count = std::min(size - at, bytes.size());
      if (!snapshot_.read(address + at, std::span(bytes).first(count))) later_.touch(address + at, count);
    }
  }

 private:
  const Memory& snapshot_;
  const Memory& later_;
};

}  // namespace luaspy
