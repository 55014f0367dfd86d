#pragma once
// A heap as JSON lines: one object a line, for scripts, jq and databases. docs/heap-formats.md
// describes the fields.

#include <functional>
#include <ostream>
#include <span>

#include "heap/heap_analysis.h"

namespace luaspy {

// All analyses must be known ones. `told` is called now and then with how much of it is done (0 to 1).
void write_heap_jsonl(std::span<const HeapAnalysis* const> analyses, const std::function<void(double part)>& told,
                      std::ostream& out);

}  // namespace luaspy
