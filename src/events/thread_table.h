#pragma once
// The threads of a recording, each kept once.

#include <optional>
#include <string>
#include <unordered_map>

#include "base/ids.h"
#include "base/thread_key.h"

namespace luaspy {

// What a recording says of a thread: its name and its process as they were when it was first seen.
struct ThreadInfo {
  int tid = 0;
  std::string name;
  int pid = 0;                // 0: the target
  std::string process;        // its command
  std::uint64_t program = 0;  // ThreadKey::program
  std::int64_t started = 0;   // ThreadKey::started

  ThreadKey key() const { return {program, pid, tid, started}; }
};

class ThreadTable {
 public:
  std::optional<ThreadId> find(const ThreadKey& key) const {
    const auto known = index_.find(key);
    return known != index_.end() ? std::optional(known->second) : std::nullopt;
  }
  ThreadId intern(const ThreadInfo& thread) {
    const auto [place, added] = index_.try_emplace(thread.key(), threads_.next());
    if (added) threads_.add(thread);
    return place->second;
  }
  const ThreadInfo& operator[](ThreadId id) const { return threads_[id]; }
  std::size_t size() const { return threads_.size(); }

 private:
  ById<ThreadId, ThreadInfo> threads_;
  std::unordered_map<ThreadKey, ThreadId, ThreadKey::Hash> index_;
};

}  // namespace luaspy
