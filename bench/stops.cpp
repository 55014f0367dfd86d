// stops PID RATE STOPS CPU NEAR LOOK...: STOPS looks of each kind at the thread of PID, at RATE Hz,
// in rounds of some of each, in random order: in a fixed order, each would find the caches as the
// one before left them, and in real use none of them is alone. The bench is on CPU; NEAR is the
// target's CPU if threads are to be stopped from there, else -1. Prints "frames NATIVE LUA",
// medians of what luaspy sees; then "LOOK NS" for each stop, and "lost LOOK N" for looks that ended
// without a stack, "frames_of LOOK N" for the median of their frames.

#include <fmt/format.h>

#include <algorithm>

#include "looks.h"
#include "pacer.h"
#include "sampling/sampler.h"

namespace luaspy::bench {
namespace {

struct Kind {
  std::string name;
  std::unique_ptr<Look> look;
  std::vector<std::int64_t> frames;  // that each look has found
};

template <typename T>
T median(std::vector<T> values) {
  std::ranges::sort(values);
  return values.empty() ? T{} : values[values.size() / 2];
}

std::size_t count(const Stack& stack, Frame::Kind kind) {
  return static_cast<std::size_t>(std::ranges::count_if(stack, [&](const Frame& frame) { return frame.kind == kind; }));
}

// The median number of frames of a kind, in some samples.
std::size_t frames(pid_t pid, bool native_only, Frame::Kind kind) {
  Result<Process> process = Process::open(pid);
  require(process.has_value(), process ? "" : process.error().text);
  Target target(std::move(*process), SamplerOptions{}.patience);
  SamplerOptions options;
  options.merging.native_only = native_only;
  Sampler sampler(target, options);
  Pacer pacer(200);
  std::vector<std::size_t> counts;
  for (int i = 0; i < 51; ++i) {
    pacer.wait();
    for (const auto& thread : target.process().threads()) {
      if (const std::optional<Sampler::Sampled> sampled = sampler.sample(*thread))
        counts.push_back(count(sampler.tables().stacks.frames_of(sampled->sample.stack), kind));
    }
    sampler.do_deferred_work();
  }
  require(!counts.empty(), "the target does not run");
  return median(std::move(counts));
}

}  // namespace
}  // namespace luaspy::bench

int main(int argc, char** argv) {
  using namespace luaspy;
  using namespace luaspy::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  require(words.size() > 5, "usage: stops PID RATE STOPS CPU NEAR LOOK...");
  const pid_t pid = std::stoi(words[0]);
  const double rate = std::stod(words[1]);
  const int rounds = std::stoi(words[2]);
  const std::size_t native = frames(pid, true, Frame::Kind::native), lua = frames(pid, false, Frame::Kind::lua);
  fmt::print("frames {} {}\n", native, lua);
  std::vector<Kind> kinds;
  for (const std::string& name : std::span(words).subspan(5))
    kinds.push_back({name, make_look(name, pid, std::stoi(words[4])), {}});
  for (const Kind& kind : kinds) require(kind.look != nullptr, "no such look: " + kind.name);
  pin(std::stoi(words[3]));

  std::minstd_rand random(std::random_device{}());
  Pacer pacer(rate);
  constexpr int in_a_row = 10, warm_up = 3;  // looks of a kind in a round; looks at its start that are not counted
  for (int round = -warm_up; round * in_a_row < rounds; ++round) {
    std::ranges::shuffle(kinds, random);
    for (Kind& kind : kinds) {
      for (int i = -warm_up; i < in_a_row; ++i) {
        pacer.wait();
        const std::chrono::nanoseconds stood_still = kind.look->look();
        if (round < 0 || i < 0) continue;
        fmt::print("{} {}\n", kind.name, stood_still.count());
        kind.frames.push_back(kind.look->frames());
      }
    }
  }
  for (const Kind& kind : kinds)
    fmt::print("lost {} {}\nframes_of {} {}\n", kind.name, kind.look->lost(), kind.name, median(kind.frames));
  return 0;
}
