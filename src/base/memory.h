#pragma once
// The only access to a target's memory. A live process, a snapshot of a stop, a saved image and a
// core file are all Memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace luaspy {

// An address in the target. Never a local pointer.
using Address = std::uint64_t;

// User space of x86-64 and arm64 that processes get by default: 47 and 48 bits.
inline constexpr Address lowest_address = 0x1000;
inline constexpr Address address_limit = Address{1} << 48;

// A kernel maps memory in pages. On every processor they are of this size, or consist of pieces of it
// (Machine::page_sizes), so such a piece can be read as a whole, or not at all.
inline constexpr Address smallest_page = 4096;
constexpr Address page_start(Address address) { return address & ~(smallest_page - 1); }

constexpr bool plausible_pointer(Address address, std::size_t alignment = 8) {
  return address >= lowest_address && address < address_limit && address % alignment == 0;
}

class Memory {
 public:
  virtual ~Memory() = default;

  // Fills `into` from `address` on. All or nothing: after a short read it returns false and `into`
  // is unspecified. Every value is untrusted: check it before use.
  virtual bool read(Address address, std::span<std::byte> into) const = 0;

  struct Request {
    Address address = 0;
    std::span<std::byte> into;
    bool done = false;  // filled completely
    // If not done: how many bytes from the start on were filled nevertheless; also 0 if the source
    // does not know. A mapping may have unreadable pages in its middle: guard pages between
    // adjacent stacks (MADV_GUARD_INSTALL, Linux 6.13).
    std::size_t filled = 0;
  };
  // Reads many ranges with as few system calls as the source allows. Each request says whether it
  // was filled.
  virtual void read_batch(std::span<Request> requests) const {
    for (Request& request : requests) {
      request.done = read(request.address, request.into);
      request.filled = 0;
    }
  }
  // How many bytes could be read from `address` on, as far as the source can tell.
  std::size_t read_some(Address address, std::span<std::byte> into) const {
    Request request{address, into};
    read_batch({&request, 1});
    return request.done ? into.size() : std::min(request.filled, into.size());
  }

  // For memory that keeps what was read (Snapshot): later reads of this range find its present
  // contents. Works page by page, as far as the pages are readable.
  virtual void prefetch(Address address, std::size_t size) const {
    std::byte byte[1];
    for (const Address end = address + size; address < end; address = page_start(address) + smallest_page)
      (void)read(address, byte);
  }

  template <typename T>
  std::optional<T> get(Address address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
};

// A value of type T at an offset of bytes that were read before. The caller must have checked the
// bounds.
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace luaspy
