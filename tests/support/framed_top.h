#pragma once
// The table of top, fed with threads and frames as tests write them down.

#include "support/framed.h"
#include "top/top_table.h"

namespace luaspy {

inline ThreadInfo thread_info(int pid, int tid, std::string name) { return {tid, std::move(name), pid}; }

struct OwnTables {
  EventTables tables;
};

class FramedTable : private OwnTables, public TopTable {
 public:
  explicit FramedTable(std::optional<std::int64_t> window_ns) : TopTable(tables, Mode::all, window_ns) {}
  void add(const ThreadInfo& thread, std::int64_t passed_ns, const FramedSample& sample) {
    TopTable::add(tables.threads.intern(thread), passed_ns, numbered(tables.stacks, sample));
  }
  void add_idle(const ThreadInfo& thread, std::int64_t count = 1) {
    TopTable::add_idle(tables.threads.intern(thread), count);
  }
  void add_waiting(const ThreadInfo& thread, std::int64_t count) {
    TopTable::add_waiting(tables.threads.intern(thread), count);
  }
};

}  // namespace luaspy
