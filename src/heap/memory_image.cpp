#include "heap/memory_image.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace luaspy {
namespace {

constexpr std::size_t page = PackedPages::page_size;

// The whole pages in it. Nobody reads them any more.
void give_back(std::span<std::byte> bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data()), end = start + bytes.size();
  const std::uintptr_t first = (start + page - 1) / page * page, last = end / page * page;
  if (first < last) ::madvise(bytes.data() + (first - start), last - first, MADV_DONTNEED);
}

}  // namespace

MemoryImage::~MemoryImage() {
  for (const std::span<std::byte> each : memory_) ::munmap(each.data(), each.size());
}

unsigned MemoryImage::processors() {
  cpu_set_t mine;
  return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? static_cast<unsigned>(CPU_COUNT(&mine)) : 1;
}

Result<void> MemoryImage::add(std::span<const AddressRange> ranges, Pages pages) {
  std::size_t size = 0;
  for (const AddressRange& range : ranges) size += range.end - range.start;
  if (size == 0) return {};
  const Error no_memory{Cause::internal,
                        fmt::format("luaspy cannot have {} MB of memory for a copy of the heap.", size / 1'000'000)};
  const int populate = pages == Pages::at_once ? MAP_POPULATE : 0;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
  if (memory == MAP_FAILED) return no_memory;
  auto* at = static_cast<std::byte*>(memory);
  memory_.emplace_back(at, size);
  size_ += size;
  for (const AddressRange& range : ranges) {
    parts_.push_back({range.start, range.end - range.start, at});
    at += range.end - range.start;
  }
  std::ranges::sort(parts_, {}, &Part::start);
  return {};
}

std::size_t MemoryImage::copy(const Memory& live, unsigned threads, Time until) {
  constexpr std::size_t piece = 4 << 20;
  struct Piece {
    Address start = 0;
    std::span<std::byte> bytes;
    std::vector<AddressRange> gaps;  // what could not be read
  };
  std::vector<Piece> pieces;
  for (const Part& part : parts_) {
    for (std::size_t at = 0; at < part.size; at += piece)
      pieces.push_back({part.start + at, {part.bytes + at, std::min(piece, part.size - at)}, {}});
  }
  std::atomic<std::size_t> next = 0, bytes_done = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < pieces.size();) {
      if (std::chrono::steady_clock::now() >= until) return;
      Piece& each = pieces[i];
      for (std::size_t done = 0; done < each.bytes.size();) {
        done += live.read_some(each.start + done, each.bytes.subspan(done));
        if (done >= each.bytes.size()) break;
        const std::size_t from = done / page * page, to = std::min(from + page, each.bytes.size());
        if (!each.gaps.empty() && each.gaps.back().end == each.start + from) each.gaps.back().end = each.start + to;
        else each.gaps.push_back({each.start + from, each.start + to});
        done = to;
      }
      bytes_done += each.bytes.size();
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < std::min<std::size_t>(threads, pieces.size()); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  std::vector<Part> readable;
  const auto add = [&](Address start, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    const bool goes_on = !readable.empty() && readable.back().end() == start &&
                         readable.back().bytes + readable.back().size == bytes.data();
    if (goes_on) readable.back().size += bytes.size();
    else readable.push_back({start, bytes.size(), bytes.data()});
  };
  for (const Piece& each : pieces) {
    std::size_t at = 0;
    for (const AddressRange& gap : each.gaps) {
      add(each.start + at, each.bytes.subspan(at, gap.start - each.start - at));
      at = gap.end - each.start;
    }
    add(each.start + at, each.bytes.subspan(at));
  }
  parts_ = std::move(readable);
  last_ = 0;
  return bytes_done;
}

const MemoryImage::Part* MemoryImage::find(Address address) const {
  if (last_ < parts_.size() && address - parts_[last_].start < parts_[last_].size) return &parts_[last_];
  const auto after = std::ranges::upper_bound(parts_, address, {}, &Part::start);
  if (after == parts_.begin()) return nullptr;
  last_ = static_cast<std::size_t>(std::prev(after) - parts_.begin());
  return address < parts_[last_].end() ? &parts_[last_] : nullptr;
}

void MemoryImage::pack() {
  if (unpacked_ != nullptr) return;
  unpacked_ = std::make_unique<Unpacked>();
  constexpr std::size_t at_once = 4 << 20;  // bytes that are given back together
  for (Part& part : parts_) {
    part.first_page = packed_.pages();
    std::size_t given_back = 0;
    for (std::size_t at = 0; at < part.size; at += page) {
      std::array<std::byte, page> last{};
      if (part.size - at < page) std::memcpy(last.data(), part.bytes + at, part.size - at);
      packed_.add(part.start + at, part.size - at < page ? std::span<const std::byte, page>(last)
                                                         : std::span<const std::byte, page>(part.bytes + at, page));
      if (at - given_back < at_once) continue;
      give_back({part.bytes + given_back, at - given_back});
      given_back = at;
    }
    give_back({part.bytes + given_back, part.size - given_back});
    part.bytes = nullptr;
  }
  for (const std::span<std::byte> each : memory_) ::munmap(each.data(), each.size());
  memory_.clear();
}

void MemoryImage::read_packed(const Part& part, std::size_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::size_t number = part.first_page + offset / page, slot = number % Unpacked::slots;
    auto& bytes = unpacked_->bytes[slot];
    if (unpacked_->number[slot] != number) {
      packed_.unpack(number, part.start + offset / page * page, bytes);
      unpacked_->number[slot] = number;
    }
    const std::size_t size = std::min(into.size(), page - offset % page);
    std::memcpy(into.data(), bytes.data() + offset % page, size);
    offset += size;
    into = into.subspan(size);
  }
}

bool MemoryImage::read(Address address, std::span<std::byte> into) const {
  while (!into.empty()) {
    const Part* const part = find(address);
    if (part == nullptr) return false;
    const std::size_t size = std::min<std::size_t>(into.size(), part->end() - address);
    if (part->bytes != nullptr) std::memcpy(into.data(), part->bytes + (address - part->start), size);
    else read_packed(*part, address - part->start, into.first(size));
    address += size;
    into = into.subspan(size);
  }
  return true;
}

}  // namespace luaspy
