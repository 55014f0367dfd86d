#include "record/record_allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "allocations/allocation_loop.h"
#include "allocations/allocation_text.h"
#include "output/raw.h"
#include "output/summary.h"
#include "profile/amount_text.h"
#include "profile/collector_cost.h"
#include "recording/recording.h"
#include "sampling/probe_turns.h"
#include "sampling/process_tree.h"
#include "sampling/sampling_loop.h"

namespace luaspy {
namespace {

class Into : public AllocationSink {
 public:
  explicit Into(Recording& recording) : recording_(recording) {}

  void add(ThreadId thread, const Tick& tick, const AllocationSample& allocation, Sample& sample) override {
    const RawWriter::Allocation amounts = {tick.at_ns, std::llround(allocation.bytes), std::llround(allocation.calls)};
    recording_.add_allocation(thread, amounts, sample);
    squares_ += static_cast<double>(amounts.bytes) * static_cast<double>(amounts.bytes);
  }
  void add_loss(Loss) override {}                     // in AllocationCounts
  void look(const AllocationCounts&) override {}      // the other slices look often enough
  double sum_of_squares() const { return squares_; }  // of the weights in bytes

 private:
  Recording& recording_;
  double squares_ = 0;
};

// What is known of the allocations at the end.
struct Found {
  AllocationCounts counts;
  double sum_of_squares = 0;
};

Result<void> run_both(ProcessTree& tree, const LoopOptions& options, const AllocationLoopOptions& allocation_options,
                      Recording& recording, LoopCounts& counts, Found& found) {
  Into into(recording);
  SamplingLoop sampling(tree, options, recording, counts);
  AllocationLoop allocating(tree, allocation_options, into, found.counts, sampling.start());
  Result<void> ran = run_probes(tree, {&sampling, &allocating}, end_of(sampling.start(), options.duration));
  counts.target_ended |= found.counts.target_ended;
  found.sum_of_squares = into.sum_of_squares();
  return ran;
}

double percent_of(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

std::string end_text(const Recording& recording, const RecordOptions& options, const Found& found) {
  const AllocationCounts& counts = found.counts;
  const Profile& bytes = *recording.allocations();
  if (bytes.samples() == 0) return "No allocation was sampled: the program was not seen to allocate.\n";
  constexpr int rows = 10;
  std::string text = collector_text(collector_cost(recording.profile(), bytes, By::samples, options.shape.mode), rows);
  const auto a_second = static_cast<std::int64_t>(
      std::llround(counts.bytes * 1e9 / static_cast<double>(std::max<std::int64_t>(counts.duration_ns, 1))));
  text += fmt::format(
      "  allocations: {} {}/s, {}: by chance, a share of the bytes is off by {:.1f} points at most (95 %)\n"
      "  trapping them cost some {:.1f} % of the program's time\n",
      counts.shares_cpu ? "at least" : "some", amount_text(a_second, Unit::bytes), count_of(bytes.samples(), "sample"),
      uncertainty(bytes, found.sum_of_squares), percent_of(counts.spent_ns, recording.profile().about.duration_ns));
  text += unsampled_text(counts.unsampled);
  if (counts.refused) text += fmt::format("  not all: {}\n", counts.refused->text);
  return text;
}

}  // namespace

Result<int> record_with_allocations(const RecordOptions& options) {
  Found found;
  const AllocationLoopOptions allocation_options = {{}, options.max_cost};
  Alongside alongside;
  alongside.run = [&](ProcessTree& tree, const LoopOptions& loop_options, Recording& recording, LoopCounts& counts) {
    found = {};  // of this part of the recording
    return run_both(tree, loop_options, allocation_options, recording, counts, found);
  };
  alongside.text = [&](const Recording& recording) { return end_text(recording, options, found); };
  return record(options, &alongside);
}

}  // namespace luaspy
