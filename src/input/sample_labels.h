#pragma once
// What pprof's labels say of a sample, by the names that luaspy gives them.

#include <string>
#include <string_view>

#include "base/sample.h"
#include "events/label_table.h"
#include "events/thread_table.h"

namespace luaspy {

struct SampleLabels {
  Attributes attributes;  // without labels
  ThreadInfo thread;
  Labels labels;  // of names that luaspy does not give, no more than raw::most_labels

  // `target`: the process whose threads have ThreadInfo::pid 0.
  void add(std::string_view key, const std::string& value, std::int64_t target);
};

}  // namespace luaspy
