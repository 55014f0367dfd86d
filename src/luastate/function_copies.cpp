#include "luastate/function_copies.h"

#include <algorithm>

#include "luastate/lua.h"

namespace luaspy {

void LastingFunctions::looked() {
  constexpr int looks_remembered = 128;
  if (++looks_ % looks_remembered != 0) return;
  for (std::atomic<std::uint64_t>& tag : tags_) tag.store(0, std::memory_order_relaxed);
}

void CopyPolicy::record(bool thrown_away) {
  const int left = looks_left_.load(std::memory_order_relaxed);
  looks_left_.store(thrown_away ? looks_after : std::max(left - 1, 0), std::memory_order_relaxed);
}

bool FunctionCopier::LimitedReads::read(Address address, std::span<std::byte> into) const {
  if (into.empty()) return true;
  if (reads_left_ == 0) return false;
  --reads_left_;
  for (Address page = page_start(address); page <= address + into.size() - 1; page += smallest_page) {
    Address& seen = seen_[page / smallest_page % seen_.size()];
    if (seen == page) continue;
    if (pages_left_ == 0) return false;
    --pages_left_;
    seen = page;
  }
  return memory_.read(address, into);
}

void FunctionCopier::copy(const Lua& lua, std::span<const Address> protos) {
  constexpr std::size_t most_copies = 32, most_bytes_of_one = 256 << 10;
  for (const Address proto : protos) {
    if (copies_.size() >= most_copies) return;
    const auto is_same = [&](const FunctionCopy& copy) { return copy.prototype.address == proto; };
    if (std::ranges::any_of(copies_, is_same)) continue;
    const std::uint64_t mark = lua.mark(memory_, proto);
    if (mark == 0 || lasting_.has(proto, mark)) continue;
    std::optional<Prototype> prototype = lua.prototype(memory_, proto, most_bytes_of_one);
    // Its last strings may be missing then, and they were not the same ones in another stop.
    if (memory_.is_used_up() && !copies_.empty()) return;
    if (prototype) copies_.push_back({&lua, mark, std::move(*prototype)});
  }
}

}  // namespace luaspy
