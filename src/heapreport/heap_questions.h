#pragma once
// What can be asked of a snapshot beside the report: one object, one class, a path, what something
// holds.

#include <string>

#include "base/paint.h"
#include "base/result.h"

namespace luaspy {

class HeapAnalysis;

struct HeapQuestions {
  // An address (0x…), a path as the report has it, the name of a class, or its number there ("#3"). Empty: not asked.
  std::string path, retained_by, of_class, object;
  bool any() const { return !path.empty() || !retained_by.empty() || !of_class.empty() || !object.empty(); }
};

// The answers about one state. An empty text: it has no such object or class.
std::string answers(const HeapAnalysis& analysis, const HeapQuestions& questions, int lines, const Paint& paint);

}  // namespace luaspy
