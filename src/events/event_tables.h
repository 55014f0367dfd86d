#pragma once
// What the numbers of a stream of events stand for. One object for all sources and sinks of a
// recording. One thread at a time may use it.

#include "events/label_table.h"
#include "events/stack_table.h"
#include "events/thread_table.h"

namespace luaspy {

struct EventTables {
  StackTable stacks;
  ThreadTable threads;
  LabelTable labels;
};

}  // namespace luaspy
