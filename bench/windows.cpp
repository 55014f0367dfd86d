// windows PID ADDRESS RATE PAIRS CPU OTHER_CPU LOOK[@same|@other]...: how much a look at RATE Hz
// slows the target down, by windows with and without it, PAIRS of each kind, in rounds of one each
// in random order. ADDRESS is where the target's counter is. @same: threads are stopped from the
// target's CPU, which is CPU, and the bench is on OTHER_CPU; @other: everything is on OTHER_CPU;
// neither: as in record, on whatever CPU the kernel chooses. Prints "LOOK WALL_NS PROGRESS
// CPU_NS TICKS STOPS STOPPED_NS" for each window, "off" for those without a look, and "lost LOOK N"
// at the end.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <span>

#include "looks.h"
#include "pacer.h"

namespace luaspy::bench {
namespace {

using system::Clock;

struct Kind {
  std::string name;
  std::unique_ptr<Look> look;
  int cpu = -1;  // -1: not pinned
};

Kind kind_of(const std::string& word, pid_t pid, int cpu, int other_cpu) {
  const std::size_t at = word.find('@');
  const bool pinned = at != word.npos;
  Kind kind{word, make_look(word.substr(0, at), pid, word.ends_with("@other") ? -1 : cpu), pinned ? other_cpu : -1};
  require(kind.look != nullptr, "no such look: " + word);
  return kind;
}

std::int64_t cpu_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

class Windows {
 public:
  Windows(pid_t pid, Address counter, double rate) : memory_(pid), counter_(counter), rate_(rate) {}

  // A window without looks.
  void off() {
    begin();
    system::sleep_until(start_ + std::chrono::nanoseconds(static_cast<std::int64_t>(length_(random_) * 1e9)));
    end("off");
  }

  // A window with looks. It ends with the last look, so that the number of looks fits its length
  // and the rate.
  void on(const Kind& kind) {
    if (kind.cpu >= 0) pin(kind.cpu);
    else unpin();
    begin();
    const auto ticks = static_cast<std::int64_t>(std::max(1.0, length_(random_) * rate_));
    Pacer pacer(rate_);
    while (ticks_ < ticks) {
      const std::optional<Pacer::Missed> missed = pacer.wait();
      if (!missed) continue;
      ticks_ += 1 + missed->late;
      const std::chrono::nanoseconds stood_still = kind.look->look();
      stops_ += stood_still.count() != 0;
      stopped_ += stood_still;
    }
    end(kind.name);
  }

 private:
  void begin() {
    ticks_ = stops_ = 0;
    stopped_ = {};
    cpu_ = cpu_ns();
    progress_ = progress();
    start_ = Clock::now();
  }
  void end(const std::string& name) {
    const std::uint64_t steps = progress() - progress_;
    const std::chrono::nanoseconds wall = Clock::now() - start_;
    fmt::print("{} {} {} {} {} {} {}\n", name, wall.count(), steps, cpu_ns() - cpu_, ticks_, stops_, stopped_.count());
  }
  std::uint64_t progress() const {
    std::uint64_t value = 0;
    require(memory_.read(counter_, std::as_writable_bytes(std::span(&value, 1))), "the target has ended");
    return value;
  }

  LiveMemory memory_;
  Address counter_;
  double rate_;
  std::uniform_real_distribution<double> length_{0.04, 0.08};  // s
  std::minstd_rand random_{std::random_device{}()};
  Clock::time_point start_;
  std::uint64_t progress_ = 0;
  std::int64_t cpu_ = 0, ticks_ = 0, stops_ = 0;
  std::chrono::nanoseconds stopped_{};
};

}  // namespace
}  // namespace luaspy::bench

int main(int argc, char** argv) {
  using namespace luaspy;
  using namespace luaspy::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  require(words.size() > 6, "usage: windows PID ADDRESS RATE PAIRS CPU OTHER_CPU LOOK[@same|@other]...");
  const pid_t pid = std::stoi(words[0]);
  std::vector<Kind> kinds;
  for (const std::string& word : std::span(words).subspan(6))
    kinds.push_back(kind_of(word, pid, std::stoi(words[4]), std::stoi(words[5])));
  for (const Kind& kind : kinds) {
    constexpr int warm_up = 20;  // looks: caches fill
    for (int i = 0; i < warm_up; ++i) kind.look->look();
  }
  std::minstd_rand random(std::random_device{}());
  Windows windows(pid, std::stoull(words[1]), std::stod(words[2]));
  windows.off();
  for (int pair = 0; pair < std::stoi(words[3]); ++pair) {
    std::ranges::shuffle(kinds, random);
    for (const Kind& kind : kinds) {
      windows.on(kind);
      windows.off();
    }
  }
  for (const Kind& kind : kinds) fmt::print("lost {} {}\n", kind.name, kind.look->lost());
  return 0;
}
