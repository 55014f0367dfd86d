// Are luaspy alloc's shares right? Programs whose own allocation function counts (programs/allocations.c)
// run workloads that are made to mislead a sampler (workloads/allocations.lua), and are sampled as
// luaspy alloc does it. Each site's shares of bytes and of calls are compared with the truth.
//
//   allocations [--seconds S] [--max-cost PERCENT] [--repeat N] [--load N] [--sites] [LUA...] [WORKLOAD...]
//
// S seconds (6) for each recording, N of each Lua and workload (1), beside --load N processes that keep a
// CPU busy. LUA: the beginning of a version; LuaJIT runs with its compiler on and off. --sites: a line
// for each site, too. Prints a table: `error` is the largest difference of a share from the truth
// in points, of sites above 5 %; `said`, how far luaspy says that this site may be off by chance (95 %);
// `bias`, the largest mean difference of a site over all recordings, with its sign. No bounds: status 1
// only if something could not be recorded.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "allocations/allocation_loop.h"
#include "allocations/counting_program.h"
#include "profile/share.h"
#include "sampling/process_tree.h"
#include "support/allocation_truth.h"
#include "support/child.h"
#include "system/signals.h"

namespace luaspy {
namespace {

using tests::Child;
using tests::Words;
using namespace allocations;

struct Options {
  double seconds = 6, max_cost = 3;
  int repeats = 1, load = 0;
  bool sites = false;
  Words words;
};

[[noreturn]] void usage() {
  tests::give_up(
      "usage: allocations [--seconds S] [--max-cost PERCENT] [--repeat N] [--load N] [--sites] [LUA...] [WORKLOAD...]");
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (++i >= count) usage();
      return std::atof(words[i]);
    };
    if (word == "--seconds") options.seconds = value();
    else if (word == "--max-cost") options.max_cost = value();
    else if (word == "--repeat") options.repeats = std::max(1, static_cast<int>(value()));
    else if (word == "--load") options.load = static_cast<int>(value());
    else if (word == "--sites") options.sites = true;
    else if (word.starts_with("-")) usage();
    else options.words.push_back(word);
  }
  return options;
}

// What was sampled, by site.
class Sites : public AllocationSink {
 public:
  explicit Sites(const StackTable& stacks) : stacks_(stacks) {}
  void add(ThreadId, const Tick&, const AllocationSample& allocation, Sample& sample) override {
    std::size_t site = 0;
    for (const Frame& frame : stacks_.frames_of(sample.stack)) site = allocation_site_of(frame.name, site);
    bytes_[site].add(allocation.bytes);
    calls_[site].add(allocation.calls);
  }
  void add_loss(Loss) override {}
  void look_at(Session&, Address, std::uint64_t, std::int64_t, const HeapReader&) override {}
  void look(const AllocationCounts&) override {}

  using BySite = std::array<Weights, allocation_sites>;
  const BySite& bytes() const { return bytes_; }
  const BySite& calls() const { return calls_; }

 private:
  const StackTable& stacks_;
  BySite bytes_{}, calls_{};
};

// Of one unit.
struct Comparison {
  double error = 0, said = 0;  // points: the largest error of a site above 5 %, and what luaspy says of that site
  int sites = 0, outside = 0;  // above 5 %; of which luaspy's own interval does not have the truth
  std::array<double, allocation_sites> errors{};  // with their signs
};

Comparison compare(const Sites::BySite& sampled, const AllocationTruth::BySite& truth) {
  constexpr double least = 5;
  Comparison result;
  Weights all;
  for (const Weights& site : sampled) all += site;
  for (std::size_t i = 0; i < allocation_sites; ++i) {
    const Share share = share_of(sampled[i], all, design_effect_of_allocations);
    const double right = share_of_site(truth, i), error = share.percent - right;
    result.errors[i] = error;
    if (right < least) continue;
    ++result.sites;
    result.outside += std::abs(error) > share.points;
    if (std::abs(error) >= std::abs(result.error)) result.error = error, result.said = share.points;
  }
  return result;
}

struct Recorded {
  AllocationCounts counts;
  AllocationTruth truth;
  Comparison bytes, calls;
  bool failed = false;
};

Recorded record(const Words& command, const Options& options) {
  Recorded recorded;
  const Program program(command);
  TargetOptions target;
  target.pid = program.pid();
  SamplerOptions sampler;
  sampler.idle = true;
  Result<ProcessTree> family = ProcessTree::open(target, sampler, false);
  if (!family) tests::give_up(family.error().text);
  Sites sites(family->tables().stacks);
  const AllocationTruth before = program.truth();
  const Result<void> done = run_allocation_loop(*family, {options.seconds, options.max_cost}, sites, recorded.counts);
  recorded.truth = program.truth() - before;
  recorded.failed = !done || recorded.counts.samples == 0;
  if (!done) fmt::print("{}\n", done.error().text);
  if (!program.is_alive()) {  // it runs for ever, unless luaspy harms it
    fmt::print("the program has ended\n");
    recorded.failed = true;
  }
  recorded.bytes = compare(sites.bytes(), recorded.truth.bytes);
  recorded.calls = compare(sites.calls(), recorded.truth.calls);
  return recorded;
}

// The mean difference, over all recordings, of the site where it is the largest.
double bias(const std::vector<Recorded>& all, Comparison Recorded::*unit) {
  double largest = 0;
  for (std::size_t i = 0; i < allocation_sites; ++i) {
    double sum = 0;
    for (const Recorded& each : all) sum += (each.*unit).errors[i];
    const double mean = sum / static_cast<double>(all.size());
    if (std::abs(mean) > std::abs(largest)) largest = mean;
  }
  return largest;
}

struct Outside {
  int sites = 0, bytes = 0, calls = 0;
};

double total(const AllocationTruth::BySite& amounts) {
  return static_cast<double>(std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0}));
}

double mean(const std::vector<Recorded>& all, const std::function<double(const Recorded&)>& of) {
  double sum = 0;
  for (const Recorded& each : all) sum += of(each);
  return sum / static_cast<double>(all.size());
}

std::string unit_text(const std::vector<Recorded>& all, Comparison Recorded::*unit) {
  const auto worst = std::ranges::max_element(all, {},
                                              [&](const Recorded& each) { return std::abs((each.*unit).error); });
  return fmt::format("{:+6.1f} {:5.1f} {:+5.1f}", ((*worst).*unit).error, ((*worst).*unit).said, bias(all, unit));
}

void print_row(const std::string& name, const std::vector<Recorded>& all, const Options& options, Outside& outside) {
  fmt::print("{:<22}  {}  {}  {:7.0f}  {:4.0f}  {:5.0f} %  {:7.2f} %  {:5.1f} %{}\n", name,
             unit_text(all, &Recorded::bytes), unit_text(all, &Recorded::calls),
             mean(all, [](const Recorded& each) { return static_cast<double>(each.counts.samples); }),
             mean(all, [](const Recorded& each) { return each.counts.calls_a_burst; }),
             mean(all, [](const Recorded& each) { return 100 * each.counts.bytes / total(each.truth.bytes); }),
             mean(all,
                  [](const Recorded& each) {
                    return 100 * static_cast<double>(each.counts.trapped) / total(each.truth.calls);
                  }),
             mean(all,
                  [](const Recorded& each) {
                    return 100 * static_cast<double>(each.counts.spent_ns) /
                           static_cast<double>(each.counts.duration_ns);
                  }),
             std::ranges::any_of(all, &Recorded::failed) ? "  FAILED" : "");
  for (std::size_t i = 0; options.sites && i < allocation_sites; ++i) {
    const double bytes = share_of_site(all.front().truth.bytes, i), calls = share_of_site(all.front().truth.calls, i);
    if (bytes == 0 && calls == 0) continue;
    fmt::print("  site {}: {:5.1f} % of the bytes, {:5.1f} % of the calls; off by", i, bytes, calls);
    for (const Recorded& each : all) fmt::print(" {:+.1f} {:+.1f},", each.bytes.errors[i], each.calls.errors[i]);
    fmt::print("\n");
  }
  for (const Recorded& each : all) {
    outside.sites += each.bytes.sites + each.calls.sites;
    outside.bytes += each.bytes.outside;
    outside.calls += each.calls.outside;
  }
}

bool is_workload(const std::string& word) {
  return std::ranges::find(allocation_workloads, word) != allocation_workloads.end();
}

bool is_wanted(std::string_view workload, const Options& options) {
  return std::ranges::none_of(options.words, is_workload) ||
         std::ranges::find(options.words, workload) != options.words.end();
}

std::vector<Source> wanted_sources(const Options& options) {
  std::vector<Source> wanted = sources();
  if (std::ranges::all_of(options.words, is_workload)) return wanted;
  std::erase_if(wanted, [&](const Source& source) {
    return std::ranges::none_of(options.words,
                                [&](const std::string& word) { return source.version.starts_with(word); });
  });
  return wanted;
}

int run(const Options& options) {
  const tests::Folder folder;
  const std::vector<Source> luas = wanted_sources(options);
  for (const Source& source : luas) compile(source, folder.path(source.version));
  system::watch_signals();
  std::vector<std::unique_ptr<Child>> load;
  for (int i = 0; i < options.load; ++i)
    load.push_back(std::make_unique<Child>(Words{"/bin/sh", "-c", "while :; do :; done"}));
  fmt::print("{:<22}  {:^18}  {:^18}  {:>7}  {:>4}  {:>7}  {:>9}  {:>7}\n", "", "bytes", "calls", "", "", "", "", "");
  fmt::print("{:<22}  {:>6} {:>5} {:>5}  {:>6} {:>5} {:>5}  {:>7}  {:>4}  {:>7}  {:>9}  {:>7}\n", "", "error", "said",
             "bias", "error", "said", "bias", "samples", "k", "total", "trapped", "cost");
  Outside outside;
  bool failed = false;
  for (const Source& source : luas) {
    for (const std::string jit : {"", "jit-off"}) {
      if (!jit.empty() && !source.is_luajit) continue;
      for (const std::string_view workload : allocation_workloads) {
        if (!is_wanted(workload, options) || system::end_requested() != 0) continue;
        std::vector<Recorded> all;
        for (int i = 0; i < options.repeats; ++i)
          all.push_back(record(
              {folder.path(source.version), LUASPY_WORKLOADS "/allocations.lua", std::string(workload), jit}, options));
        print_row(fmt::format("{} {}{}", source.version, workload, jit.empty() ? "" : ", off"), all, options, outside);
        std::fflush(stdout);
        failed = failed || std::ranges::any_of(all, &Recorded::failed);
      }
    }
  }
  if (outside.sites != 0)
    fmt::print("\n{} shares of sites above 5 %: {:.1f} % are further from the truth than luaspy says\n", outside.sites,
               100.0 * (outside.bytes + outside.calls) / outside.sites);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace luaspy

int main(int count, char** words) { return luaspy::run(luaspy::parse(count, words)); }
