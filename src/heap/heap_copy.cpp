#include "heap/heap_copy.h"

#include <algorithm>
#include <array>
#include <bit>

namespace luaspy {

void HeapCopy::set_space(const AddressSpace& space) {
  ranges_.clear();
  for (const Mapping& mapping : space.mappings()) {
    if (!mapping.readable) continue;
    if (!ranges_.empty() && ranges_.back().end == mapping.start) ranges_.back().end = mapping.end;
    else ranges_.push_back({mapping.start, mapping.end});
  }
}

void HeapCopy::start(bool forget_pages) {
  mode_ = Mode::learning;
  is_late_ = false;
  missing_ = 0;
  for (Piece& piece : pieces_) {
    piece.valid = 0;
    if (forget_pages) piece.used = 0;
  }
  if (forget_pages) used_pages_ = 0;
}

void HeapCopy::refresh(Address address) {
  if (mode_ != Mode::learning) return;
  if (Piece* const piece = find(address - address % piece_size, false)) {
    piece->valid = static_cast<std::uint16_t>(piece->valid & ~(1u << address % piece_size / page_size));
  }
}

void HeapCopy::copy(std::size_t most_filled) {
  mode_ = Mode::filling;
  pages_to_fill_ = most_filled;
  missing_ = 0;
  copied_bytes_ = 0;
  constexpr std::size_t most = 1024;  // the number that LiveMemory takes at once
  std::array<Request, most> requests;
  std::array<std::pair<Piece*, std::uint16_t>, most> pages;
  std::size_t count = 0;
  const auto flush = [&] {
    if (std::chrono::steady_clock::now() >= end_) is_late_ = true;
    if (is_late_) return void(count = 0);
    live_.read_batch(std::span(requests).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (!requests[i].done) continue;
      pages[i].first->valid = static_cast<std::uint16_t>(pages[i].first->valid | pages[i].second);
      copied_bytes_ += requests[i].into.size();
    }
    count = 0;
  };
  for (Piece& piece : pieces_) {
    piece.valid = 0;
    for (unsigned page = 0; page < pages_per_piece;) {
      unsigned end = page;
      while (end < pages_per_piece && (piece.used >> end & 1) != 0) ++end;
      if (end == page) {
        ++page;
        continue;
      }
      requests[count] = {
          piece.start + page * page_size, {piece.bytes.get() + page * page_size, (end - page) * page_size}, false};
      pages[count] = {&piece, static_cast<std::uint16_t>((1u << end) - (1u << page))};
      if (++count == most) flush();
      page = end;
    }
  }
  flush();
}

bool HeapCopy::has_time() const {
  constexpr unsigned some = 256;  // reads, which take less than 0.1 ms together, or a few ms if each fetches a page
  if (mode_ == Mode::filling && !is_late_ && ++reads_ % some == 0) is_late_ = std::chrono::steady_clock::now() >= end_;
  return !is_late_;
}

bool HeapCopy::read(Address address, std::span<std::byte> into) const {
  if (!has_time()) return false;
  while (!into.empty()) {
    const Address start = address - address % piece_size;
    const std::size_t offset = address - start;
    const std::size_t size = std::min(into.size(), piece_size - offset);
    Piece* const piece = find(start, true);
    if (piece == nullptr) {
      ++missing_;
      return false;
    }
    const auto first = static_cast<unsigned>(offset / page_size),
               last = static_cast<unsigned>((offset + size - 1) / page_size);
    const auto wanted = static_cast<std::uint16_t>((2u << last) - (1u << first));
    if ((piece->used & wanted) != wanted) {
      used_pages_ += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(wanted & ~piece->used)));
      piece->used = static_cast<std::uint16_t>(piece->used | wanted);
    }
    for (unsigned page = first; page <= last && (piece->valid & wanted) != wanted; ++page) {
      if ((piece->valid >> page & 1) != 0 || mode_ == Mode::sealed) continue;
      if (mode_ == Mode::learning) fetch(*piece, page);
      else fetch_page(*piece, page);
    }
    if ((piece->valid & wanted) != wanted) {
      missing_ += mode_ == Mode::learning ? 0 : 1;
      return false;
    }
    std::memcpy(into.data(), piece->bytes.get() + offset, size);
    address += size;
    into = into.subspan(size);
  }
  return true;
}

std::vector<AddressRange> HeapCopy::ranges() const {
  std::vector<AddressRange> ranges;
  for (const Piece& piece : pieces_) {
    for (unsigned page = 0; page < pages_per_piece; ++page) {
      const Address start = piece.start + page * page_size;
      if ((piece.used & piece.valid) >> page & 1) ranges.push_back({start, start + page_size});
    }
  }
  sort_and_join(ranges);
  return ranges;
}

// Fetches `page` and what is mapped around it in the piece; if that cannot be read at once, only
// the page.
void HeapCopy::fetch(Piece& piece, unsigned page) const {
  if (!is_mapped(piece.start + page * page_size)) return;
  unsigned first = page, end = page + 1;
  while (first > 0 && (piece.valid >> (first - 1) & 1) == 0 && is_mapped(piece.start + (first - 1) * page_size))
    --first;
  while (end < pages_per_piece && (piece.valid >> end & 1) == 0 && is_mapped(piece.start + end * page_size)) ++end;
  const auto bytes = std::span(piece.bytes.get(), piece_size);
  if (live_.read(piece.start + first * page_size, bytes.subspan(first * page_size, (end - first) * page_size))) {
    piece.valid = static_cast<std::uint16_t>(piece.valid | ((1u << end) - (1u << first)));
  } else if (live_.read(piece.start + page * page_size, bytes.subspan(page * page_size, page_size))) {
    piece.valid = static_cast<std::uint16_t>(piece.valid | 1u << page);
  }
}

// During the stop.
void HeapCopy::fetch_page(Piece& piece, unsigned page) const {
  if (pages_to_fill_ == 0) return;
  --pages_to_fill_;
  if (!live_.read(piece.start + page * page_size, {piece.bytes.get() + page * page_size, page_size})) return;
  piece.valid = static_cast<std::uint16_t>(piece.valid | 1u << page);
  copied_bytes_ += page_size;
}

bool HeapCopy::is_mapped(Address page) const {
  if (ranges_.empty()) return true;
  const auto after = std::ranges::upper_bound(ranges_, page, {}, &Range::start);
  return after != ranges_.begin() && page < std::prev(after)->end;
}

std::size_t HeapCopy::slot_of(Address start) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = (start / piece_size * 0x9e37'79b9'7f4a'7c15) >> 32 & mask;
  while (table_[at] != 0 && pieces_[table_[at] - 1].start != start) at = (at + 1) & mask;
  return at;
}

HeapCopy::Piece* HeapCopy::find(Address start, bool make) const {
  if (last_ < pieces_.size() && pieces_[last_].start == start) return &pieces_[last_];
  const std::size_t at = slot_of(start);
  if (table_[at] != 0) {
    last_ = table_[at] - 1;
    return &pieces_[last_];
  }
  if (!make || kept_bytes() + piece_size > most_bytes_ || start >= address_limit) return nullptr;
  Piece piece;
  piece.start = start;
  piece.bytes = std::make_unique_for_overwrite<std::byte[]>(piece_size);
  pieces_.push_back(std::move(piece));
  last_ = static_cast<std::uint32_t>(pieces_.size() - 1);
  table_[at] = last_ + 1;
  if (2 * pieces_.size() > table_.size()) {
    table_.assign(2 * table_.size(), 0);
    for (std::uint32_t i = 0; i < pieces_.size(); ++i) table_[slot_of(pieces_[i].start)] = i + 1;
  }
  return &pieces_[last_];
}

}  // namespace luaspy
