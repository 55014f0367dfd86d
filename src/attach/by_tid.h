#pragma once
// Threads by their numbers, in the order in which they came. Each operation takes the same time however many there
// are: a program may begin and end thousands of threads a second.

#include <sys/types.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

namespace luaspy {

// `T` has tid(), which never changes.
template <typename T>
class ByTid {
 public:
  // Not the ones that were removed; valid until the next change.
  const std::vector<std::shared_ptr<T>>& all() {
    if (removed_ != 0) close_gaps();
    return all_;
  }
  // nullptr: there is none.
  std::shared_ptr<T> find(pid_t tid) const {
    const auto found = place_.find(tid);
    return found != place_.end() ? all_[found->second] : nullptr;
  }
  // Replaces one of the same number.
  void add(std::shared_ptr<T> thread) {
    const pid_t tid = thread->tid();
    remove(tid);
    place_.emplace(tid, all_.size());
    all_.push_back(std::move(thread));
  }
  void remove(pid_t tid) {
    const auto found = place_.find(tid);
    if (found == place_.end()) return;
    all_[found->second] = nullptr;
    place_.erase(found);
    if (++removed_ > all_.size() / 2) close_gaps();
  }
  void clear() {
    all_.clear();
    place_.clear();
    removed_ = 0;
  }

 private:
  // At most as often as it takes to have paid for it: once for as many removals as there are places, or once a call of
  // all(), which hands out all of them.
  void close_gaps() {
    std::erase(all_, nullptr);
    for (std::size_t i = 0; i < all_.size(); ++i) place_[all_[i]->tid()] = i;
    removed_ = 0;
  }

  std::vector<std::shared_ptr<T>> all_;  // nullptr: was removed
  std::unordered_map<pid_t, std::size_t> place_;
  std::size_t removed_ = 0;
};

}  // namespace luaspy
