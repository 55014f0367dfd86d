#pragma once
// What pprof's labels and OTLP's attributes say of a sample, by the names that luaspy gives them.

#include <string>
#include <string_view>

#include "base/sample.h"
#include "events/thread_table.h"

namespace luaspy {

struct SampleLabels {
  Attributes attributes;
  ThreadInfo thread;

  // `target`: the process whose threads have ThreadInfo::pid 0. Others than these labels are left out.
  void add(std::string_view key, const std::string& value, std::int64_t target = 0);
};

}  // namespace luaspy
