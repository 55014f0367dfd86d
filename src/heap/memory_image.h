#pragma once
// A target's memory at one instant, or what is kept of it: ranges of addresses with their bytes, in
// memory of luaspy.

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "base/address_range.h"
#include "base/memory.h"
#include "base/result.h"
#include "heap/packed_pages.h"

namespace luaspy {

class MemoryImage : public Memory {
 public:
  MemoryImage() = default;
  MemoryImage(const MemoryImage&) = delete;
  MemoryImage& operator=(const MemoryImage&) = delete;
  ~MemoryImage() override;

  // Adds ranges that the image does not have yet, filled with zeros. Pages::at_once: their memory is
  // there already, and no page of it has to be made later, while the target stands still. An Error if
  // luaspy cannot have that much.
  enum class Pages { at_once, when_filled };
  Result<void> add(std::span<const AddressRange> ranges, Pages pages = Pages::at_once);

  // Reads all of it again from `live`, with `threads` threads. Pages that cannot be read become
  // unreadable here. It ends at `until`: then it returns how many bytes it had read, which are less than
  // bytes(), and the image is good for nothing.
  using Time = std::chrono::steady_clock::time_point;
  std::size_t copy(const Memory& live, unsigned threads, Time until = Time::max());
  std::size_t copy(const Memory& live, Time until = Time::max()) { return copy(live, processors(), until); }

  // Keeps it in less memory from now on (packed_pages.h): mostly in less than half. Reads in order of
  // addresses take as long as before, others ten times as long.
  void pack();

  bool read(Address address, std::span<std::byte> into) const override;
  std::size_t bytes() const { return size_; }
  std::size_t packed_bytes() const { return packed_.bytes(); }  // 0: not packed

  // The parts that can be read.
  struct Part {
    Address start = 0;
    std::size_t size = 0;
    std::byte* bytes = nullptr;  // nullptr: packed
    std::size_t first_page = 0;  // packed: the number of its first page; every part begins a new one
    Address end() const { return start + size; }
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  // Pages that were unpacked last, by their numbers.
  struct Unpacked {
    static constexpr std::size_t slots = 4096;
    static constexpr std::size_t none = ~std::size_t{0};
    std::array<std::size_t, slots> number;
    std::array<std::array<std::byte, PackedPages::page_size>, slots> bytes;
    Unpacked() { number.fill(none); }
  };

  static unsigned processors();
  const Part* find(Address address) const;
  void read_packed(const Part& part, std::size_t offset, std::span<std::byte> into) const;

  std::vector<Part> parts_;                   // ascending
  std::vector<std::span<std::byte>> memory_;  // owned
  std::size_t size_ = 0;
  mutable std::size_t last_ = 0;  // the last part read
  PackedPages packed_;
  mutable std::unique_ptr<Unpacked> unpacked_;  // nullptr: not packed
};

}  // namespace luaspy
