#pragma once
// What was read of a target during one stop, page by page. While it is open, a read that it cannot answer goes to the
// target and is kept; once it is closed (the thread runs again) such a read fails. All that it holds is of one instant.
//
// The pages that one stop needed are nearly always those that the next one needs (the stack's top, the CallInfo nodes,
// the Lua stack), so they are fetched in one batch at the start. A wrong prediction costs a read, never a wrong byte.

#include <vector>

#include "memory.h"

namespace luaspy {

class Snapshot : public Memory {
 public:
  static constexpr std::size_t page_size = 4096;

  explicit Snapshot(const Memory& target) : target_(target) {}

  // Forgets everything and opens it for a new stop. `stack` … `stack + stack_bytes`, and the pages in `predicted`, are
  // read at once.
  void open(Address stack, std::size_t stack_bytes, const std::vector<Address>& predicted);
  void close() { open_ = false; }

  bool read(Address address, std::span<std::byte> into) const override;
  // Places that are looked at once (candidates for a lua_State) do not become pages: most of them are never read again.
  void read_batch(std::span<Request> requests) const override;

  // The pages outside the stack range that were read since open(), ascending: the prediction for the next stop.
  std::vector<Address> touched() const;
  // The part of the stack range that could be read, without a copy.
  Address stack_start() const { return stack_start_; }
  std::span<const std::byte> stack() const { return {stack_.data(), stack_size_}; }

 private:
  struct Page {
    Address address;
    std::size_t slot;     // index into pool_, in pages
    mutable bool touched;
  };
  const Page* find(Address page) const;
  const Page* fetch(Address page) const;
  bool read_piece(Address address, std::span<std::byte> into) const;

  const Memory& target_;
  bool open_ = false;
  Address stack_start_ = 0;
  std::size_t stack_size_ = 0;
  std::vector<std::byte> stack_;
  mutable std::vector<Page> pages_;      // sorted by address
  mutable std::vector<std::byte> pool_;
  mutable std::size_t slots_used_ = 0;
  mutable std::vector<Request> requests_;
};

}  // namespace luaspy
