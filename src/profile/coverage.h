#pragma once
// How much of the CPU time that a target has used is in the samples, in words.

#include <optional>
#include <string>

#include "base/cpu_use.h"

namespace luaspy {

// Percent, 100 at most: by chance, samples may stand for a little more than there was. nullopt: it used none, or it
// is not known. `sampled_ns`: of samples of threads that executed.
std::optional<double> coverage(const CpuUse& used, std::int64_t sampled_ns);
// "98 % of the 82.5 s of CPU time that was used meanwhile"; "" without a coverage().
std::string coverage_text(const CpuUse& used, std::int64_t sampled_ns);

}  // namespace luaspy
