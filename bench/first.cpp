// first PID: the time from the start to the first finished sample of a running thread with Lua in
// it. Prints "NS TICKS".

#include <fmt/format.h>

#include <algorithm>

#include "looks.h"
#include "sampling/sampler.h"

int main(int argc, char** argv) {
  using namespace luaspy;
  using namespace luaspy::bench;
  require(argc == 2, "usage: first PID");
  const system::Clock::time_point start = system::Clock::now();
  const auto elapsed = [&] { return system::Clock::now() - start; };
  Result<Process> process = Process::open(std::stoi(argv[1]));
  require(process.has_value(), process ? "" : process.error().text);
  Target target(std::move(*process), SamplerOptions{}.patience);
  Sampler sampler(target, {});
  for (int ticks = 1; elapsed() < std::chrono::seconds(10); ++ticks) {
    for (const auto& thread : target.process().threads()) {
      const std::optional<Sampler::Sampled> sampled = sampler.sample(*thread);
      if (!sampled || sampled->sample.loss != Loss::none) continue;
      if (std::ranges::none_of(sampler.tables().stacks.frames_of(sampled->sample.stack),
                               [](const Frame& frame) { return frame.kind == Frame::Kind::lua; }))
        continue;
      fmt::print("{} {}\n", std::chrono::nanoseconds(elapsed()).count(), ticks);
      return 0;
    }
    sampler.do_deferred_work();
  }
  require(false, "no sample with Lua in ten seconds");
}
