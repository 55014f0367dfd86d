#include "stack/snapshot.h"

#include <algorithm>
#include <bit>

namespace luaspy {
namespace {

constexpr std::size_t blocks_of_page = Snapshot::page_size / Snapshot::block_size;
static_assert(blocks_of_page == 64, "a block is a bit of a word");

// The blocks of the page that the `size` bytes at `address` touch. All bytes are in the same page.
constexpr std::uint64_t blocks_of(Address address, std::size_t size) {
  const std::size_t first = address % Snapshot::page_size / Snapshot::block_size;
  const std::size_t last = (address % Snapshot::page_size + size - 1) / Snapshot::block_size;
  return (~std::uint64_t{0} >> (blocks_of_page - 1 - (last - first))) << first;
}

// Limits how much a hostile target can make one stop read: 32 MiB, twice what 150,000 CallInfos
// take.
constexpr std::size_t page_limit = 8192;

}  // namespace

// A range costs 0.4 µs and each KB 0.06 µs, so neighbouring blocks become one range, even across a
// gap of some blocks.
void Snapshot::open(Address stack, std::size_t stack_bytes, const Prediction& predicted, std::size_t red_zone) {
  constexpr Address gap = 32 * block_size;
  open_ = true;
  stack_start_ = stack;
  stack_size_ = stack_bytes;
  red_zone_ = red_zone;
  // Stay in the page: the page below may be a guard page.
  below_ = stack_bytes != 0 ? std::min<std::size_t>(red_zone_, stack % page_size) : 0;
  if (stack_.size() < red_zone_ + stack_bytes) stack_.resize(red_zone_ + stack_bytes);
  pages_.clear();
  last_ = 0;
  used_ = 0;
  const std::size_t most = std::min(predicted.size(), page_limit);
  if (pool_.size() < most * page_size)
    // Requests point into the pool: it must not move until they are read.
    pool_.resize(most * page_size);

  requests_.clear();
  std::byte* const lowest = stack_.data() + (red_zone_ - below_);
  if (stack_bytes != 0) requests_.push_back({stack - below_, {lowest, below_ + stack_bytes}});
  Address start = 0, end = 0;  // the range being built
  for (const Used& used : std::span(predicted).first(most)) {
    std::uint64_t blocks = used.now | used.before;
    while (blocks != 0) {
      const int first = std::countr_zero(blocks), count = std::countr_one(blocks >> first);
      const Address from = used.page + static_cast<Address>(first) * block_size,
                    to = from + static_cast<Address>(count) * block_size;
      blocks &= count == blocks_of_page ? 0 : ~(((std::uint64_t{1} << count) - 1) << first);
      // Blocks of one page always join one range: a page has only one place in the pool.
      if (start != 0 && (from - end <= gap || page_start(from) == page_start(end - 1))) {
        end = to;
        continue;
      }
      if (start != 0) add_range(start, end);
      start = from, end = to;
    }
  }
  if (start != 0) add_range(start, end);
  target_->read_batch(requests_);
  for (const Request& request : requests_) {
    if (request.done) continue;
    const Address last = request.address + request.into.size();
    if (request.into.data() == lowest && request.filled > below_)
      stack_size_ = std::min(request.filled - below_, stack_size_);
    else if (request.into.data() == lowest) stack_size_ = below_ = 0;
    else
      std::erase_if(
          pages_, [&](const Page& page) { return page.address + page_size > request.address && page.address < last; });
  }
}

void Snapshot::add_range(Address start, Address end) {
  const std::size_t at = used_;
  (void)room(end - start);
  for (Address page = page_start(start); page < end; page += page_size) {
    const Address from = std::max(start, page), to = std::min(end, page + page_size);
    pages_.push_back({page, at + (page - start), blocks_of(from, to - from)});
  }
  requests_.push_back({start, {pool_.data() + at, end - start}});
}

std::byte* Snapshot::room(std::size_t size) const {
  if (pool_.size() < used_ + size) pool_.resize(std::max(2 * pool_.size(), used_ + size));
  used_ += size;
  return pool_.data() + (used_ - size);
}

bool Snapshot::read(Address address, std::span<std::byte> into) const {
  if (address + into.size() < address) return false;
  while (!into.empty()) {
    std::size_t count = std::min(into.size(), page_start(address) + page_size - address);
    if (address >= stack_start_ - below_ && address < stack_start_ + stack_size_) {
      count = std::min(into.size(), stack_start_ + stack_size_ - address);
      std::memcpy(into.data(), stack_.data() + (address + red_zone_ - stack_start_), count);
    } else if (!read_piece(address, into.first(count))) {
      return false;
    }
    address += count;
    into = into.subspan(count);
  }
  return true;
}

void Snapshot::read_batch(std::span<Request> requests) const {
  requests_.clear();
  for (Request& request : requests) {
    const bool in_page = page_start(request.address + request.into.size() - 1) == page_start(request.address);
    const Page* const page = in_page ? find(page_start(request.address)) : nullptr;
    const bool here = page != nullptr && (blocks_of(request.address, request.into.size()) & ~page->valid) == 0;
    request.done = (here || !open_) && read(request.address, request.into);
    if (!here && open_) requests_.push_back(request);
  }
  target_->read_batch(requests_);
  std::size_t next = 0;
  for (Request& request : requests) {
    if (next < requests_.size() && !request.done && request.address == requests_[next].address) {
      request.filled = requests_[next].filled;
      request.done = requests_[next++].done;
    }
  }
}

bool Snapshot::read_piece(Address address, std::span<std::byte> into) const {
  const std::uint64_t blocks = blocks_of(address, into.size());
  const Page* const page = provide(page_start(address), blocks);
  if (page == nullptr) return false;
  page->used |= blocks;
  std::memcpy(into.data(), pool_.data() + (page->offset + (address - page->address)), into.size());
  return true;
}

void Snapshot::prefetch(Address address, std::size_t size) const {
  const Address end = address + size;
  while (address < end) {
    const std::size_t count = std::min<Address>(end, page_start(address) + page_size) - address;
    const std::uint64_t blocks = blocks_of(address, count);
    const bool in_stack = address >= stack_start_ && address + count <= stack_start_ + stack_size_;
    if (const Page* const page = in_stack ? nullptr : provide(page_start(address), blocks)) page->used |= blocks;
    address += count;
  }
}

Snapshot::Page* Snapshot::find(Address address) const {
  if (last_ < pages_.size() && pages_[last_].address == address) return &pages_[last_];
  const auto page = std::ranges::lower_bound(pages_, address, {}, &Page::address);
  if (page == pages_.end() || page->address != address) return nullptr;
  last_ = static_cast<std::size_t>(page - pages_.begin());
  return &*page;
}

// The page with at least these blocks; nullptr if they cannot be read.
Snapshot::Page* Snapshot::provide(Address address, std::uint64_t blocks) const {
  Page* page = find(address);
  if (page != nullptr && (blocks & ~page->valid) == 0) return page;
  if (!open_ || used_ >= page_limit * page_size) return nullptr;
  std::byte* const into = room(page_size);
  if (!target_->read(address, {into, page_size})) return nullptr;
  if (page == nullptr) {
    last_ = static_cast<std::size_t>(std::ranges::lower_bound(pages_, address, {}, &Page::address) - pages_.begin());
    page = &*pages_.insert(pages_.begin() + static_cast<std::ptrdiff_t>(last_), {address, 0, 0});
  }
  page->offset = static_cast<std::size_t>(into - pool_.data());
  page->valid = ~std::uint64_t{0};
  return page;
}

void Snapshot::predict(Prediction& prediction) const {
  Prediction next;
  auto old = prediction.begin();
  const auto keep_old = [&](Address up_to) {
    for (; old != prediction.end() && old->page < up_to; ++old) {
      if (old->now != 0) next.push_back({old->page, 0, old->now});
    }
  };
  for (const Page& page : pages_) {
    keep_old(page.address);
    const bool known = old != prediction.end() && old->page == page.address;
    const std::uint64_t before = known ? old->now : 0;
    if (known) ++old;
    if ((page.used | before) != 0) next.push_back({page.address, page.used, before & ~page.used});
  }
  keep_old(~Address{0});
  prediction.swap(next);
}

}  // namespace luaspy
