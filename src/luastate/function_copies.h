#pragma once
// Copies of functions that are made in the stop. A program may load a function, call it and throw it
// away: by the time the thread runs again and its stack is named, the function may be freed, and another
// one may be in its place, even one with the same mark (LuaCall.mark): chunks of one length are
// allocated and freed in the same order again and again.
//
// Whether a target does that is learned from it (CopyPolicy). There, a stop reads all functions that are
// being called, except those that looks have found unchanged for some time (LastingFunctions). One thread
// asks both of these in the stop, another one may teach them.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "luastate/prototype.h"

namespace luaspy {

class Lua;

struct FunctionCopy {
  const Lua* lua = nullptr;
  std::uint64_t mark = 0;  // as LuaCall.mark, of the Proto at prototype.address
  Prototype prototype;
};

class LastingFunctions {
 public:
  bool has(Address proto, std::uint64_t mark) const {
    return tags_[place_of(proto, mark)].load(std::memory_order_relaxed) == tag_of(proto, mark);
  }
  // So many looks in a row have found the same function there.
  static constexpr int enough_looks = 8;
  void add(Address proto, std::uint64_t mark) {
    tags_[place_of(proto, mark)].store(tag_of(proto, mark), std::memory_order_relaxed);
  }
  // Call after each look: now and then all are forgotten, because a function that lasts may be thrown
  // away, too.
  void looked();

 private:
  static constexpr std::size_t places = 1 << 10;
  // Never 0.
  static std::uint64_t tag_of(Address proto, std::uint64_t mark) { return (mark ^ proto * 0x9e37'79b9'7f4a'7c15) | 1; }
  static std::size_t place_of(Address proto, std::uint64_t mark) { return tag_of(proto, mark) >> 32 & (places - 1); }

  std::array<std::atomic<std::uint64_t>, places> tags_{};
  int looks_ = 0;
};

// Does a stop copy functions?
class CopyPolicy {
 public:
  bool copies() const { return always_ || looks_left_.load(std::memory_order_relaxed) > 0; }
  // Call after each look. `thrown_away`: a function that was copied is no longer there, or is another
  // one than at an earlier look; or one that was not copied was no longer there when its name was
  // asked for. Copies are made for some looks after each such one, and for the first looks.
  void record(bool thrown_away);
  // For a caller that looks only once: copies always.
  void copy_always() { always_ = true; }

 private:
  static constexpr int first_looks = 64, looks_after = 1024;
  std::atomic<int> looks_left_ = first_looks;
  bool always_ = false;
};

// Makes the copies of one stop, within limits for all of them together.
class FunctionCopier {
 public:
  // `stopped` keeps what it reads, so that the next stop can predict it.
  FunctionCopier(const Memory& stopped, const LastingFunctions& lasting, std::vector<FunctionCopy>& copies)
      : memory_(stopped), lasting_(lasting), copies_(copies) {}

  // Of the functions at `protos` that do not last, in this order.
  void copy(const Lua& lua, std::span<const Address> protos);

 private:
  // Reads one by one. Pages are limited because each costs a read if it was not predicted.
  class LimitedReads : public Memory {
   public:
    explicit LimitedReads(const Memory& memory) : memory_(memory) {}
    bool read(Address address, std::span<std::byte> into) const override;
    bool is_used_up() const { return reads_left_ == 0 || pages_left_ == 0; }

   private:
    static constexpr std::size_t most_reads = 8192, most_pages = 256;
    const Memory& memory_;
    mutable std::array<Address, 2 * most_pages> seen_{};  // by page, modulo the size
    mutable std::size_t reads_left_ = most_reads, pages_left_ = most_pages;
  };

  LimitedReads memory_;
  const LastingFunctions& lasting_;
  std::vector<FunctionCopy>& copies_;
};

}  // namespace luaspy
