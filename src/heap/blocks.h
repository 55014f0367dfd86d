#pragma once
// A list whose length is not known while it grows. A vector that grows has its elements twice for a
// while; this has them once, but for a block.

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace luaspy {

template <typename T>
class Blocks {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void add(const T& element) {
    if (blocks_.empty() || blocks_.back().size() == block) blocks_.emplace_back().reserve(block);
    blocks_.back().push_back(element);
    ++size_;
  }
  std::size_t size() const { return size_; }
  // All of them, in order. Empties this.
  std::vector<T> take() {
    std::vector<T> all;
    all.reserve(std::exchange(size_, 0));
    for (std::vector<T>& each : blocks_) {
      all.insert(all.end(), each.begin(), each.end());
      each = {};
    }
    blocks_.clear();
    return all;
  }

 private:
  static constexpr std::size_t block = (4 << 20) / sizeof(T);
  std::vector<std::vector<T>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace luaspy
