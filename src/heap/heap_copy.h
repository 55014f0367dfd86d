#pragma once
// Memory in big pieces, for reading a million places: a read fetches the surrounding piece and
// keeps it. The pages that were asked for are remembered. Later all of them are read again at once,
// in a stop that lasts only as long as the copying.
//
//   learning: a read fetches the piece (64 KiB) around it from the running target    → used pages
//   copy():   reads the used pages again, in as few system calls as possible         = the stop
//   filling:  until the stop ends, a read may fetch a few more pages
//   seal():   from now on, a read finds only what was read before

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address_space.h"
#include "base/memory.h"

namespace luaspy {

class HeapCopy : public Memory {
 public:
  static constexpr std::size_t page_size = smallest_page, piece_size = 64 << 10;

  // `live` must outlive this. `most_bytes` limits what is kept: beyond it, reads of new pieces
  // fail.
  HeapCopy(const Memory& live, std::size_t most_bytes) : live_(live), most_bytes_(most_bytes) {}

  // The mapped memory: pieces are clipped to it, and nothing else is fetched.
  void set_space(const AddressSpace& space);

  // Starts to collect the pages that are used: everything fetched is discarded. `forget_pages`: also forgets which
  // pages were used.
  void start(bool forget_pages);
  // The next read of this page fetches it again.
  void refresh(Address address);
  // `most_filled`: pages that may be fetched after it.
  void copy(std::size_t most_filled = 512);
  void seal() { mode_ = Mode::sealed; }
  // The stop has to end then: copy() ends, and so do reads, which fail from then on until the next learn().
  void end_at(std::chrono::steady_clock::time_point time) { end_ = time; }
  bool is_late() const { return is_late_; }  // it had to end before all was read

  bool read(Address address, std::span<std::byte> into) const override;

  // What was used and can be read, page by page: ascending and disjoint.
  std::vector<AddressRange> ranges() const;

  std::size_t used_bytes() const { return used_pages_ * page_size; }  // what copy() reads
  std::size_t copied_bytes() const { return copied_bytes_; }          // what it has read
  std::size_t kept_bytes() const { return pieces_.size() * piece_size; }
  bool has_filled_all() const { return pages_to_fill_ == 0; }  // more pages were needed, or might have been
  // Reads that failed because the stop had not read the memory; while learning, reads beyond
  // most_bytes.
  std::int64_t missing() const { return missing_; }

 private:
  static constexpr unsigned pages_per_piece = piece_size / page_size;
  struct Piece {
    Address start = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::uint16_t valid = 0, used = 0;  // a bit for each page
  };
  struct Range {
    Address start, end;
  };

  Piece* find(Address start, bool make) const;
  std::size_t slot_of(Address start) const;
  void fetch(Piece& piece, unsigned page) const;
  void fetch_page(Piece& piece, unsigned page) const;
  bool is_mapped(Address page) const;
  bool has_time() const;

  const Memory& live_;
  std::size_t most_bytes_;
  enum class Mode { learning, filling, sealed } mode_ = Mode::learning;
  std::vector<Range> ranges_;  // ascending, disjoint
  // Filled by reads.
  mutable std::vector<Piece> pieces_;
  mutable std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(64);  // by hash: index + 1 of a piece; 0: free
  mutable std::uint32_t last_ = 0;                                             // the last piece read
  mutable std::size_t used_pages_ = 0;
  mutable std::int64_t missing_ = 0;
  mutable std::size_t copied_bytes_ = 0;
  mutable std::size_t pages_to_fill_ = 0;  // pages that may still be fetched
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::time_point::max();
  mutable bool is_late_ = false;
  mutable unsigned reads_ = 0;  // since it was asked for the time
};

}  // namespace luaspy
