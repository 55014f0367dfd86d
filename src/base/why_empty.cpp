#include "base/why_empty.h"

#include <fmt/format.h>

namespace luaspy {
namespace {

std::string looks_text(std::int64_t looks) { return fmt::format("{} look{}", looks, looks == 1 ? "" : "s"); }

std::string cpu_text(const EmptyFacts& facts) {
  return fmt::format("{:.{}f} s of CPU time", static_cast<double>(facts.cpu_ns) / 1e9,
                     facts.cpu_ns < 100'000'000 ? 3 : 1);
}

}  // namespace

std::string why_empty(const EmptyFacts& facts) {
  constexpr double much = 0.01;  // of the time; less is used by a thread that merely wakes now and then
  const bool used_much = static_cast<double>(facts.cpu_ns) > much * facts.seconds * 1e9;
  LossCounts losses = facts.losses;
  losses[static_cast<std::size_t>(Loss::left_out)] = 0;
  std::int64_t lost = 0;
  for (const std::int64_t count : losses) lost += count;
  const std::int64_t looks = facts.asleep + facts.waiting + lost;
  if (looks == 0)
    return fmt::format("luaspy did not get to look at any of its threads in {:.1f} s{}", facts.seconds,
                       used_much ? ", in which they used " + cpu_text(facts) : "");
  if (facts.asleep == looks) {
    std::string text = fmt::format("its threads slept at {}{}", looks == 1 ? "the only " : "all ",
                                   looks == 1 ? "look" : looks_text(looks));
    if (used_much) text += fmt::format(", though they used {}: a higher --rate may see more", cpu_text(facts));
    return text;
  }
  std::string text = fmt::format("of {}, ", looks_text(looks));
  if (facts.asleep != 0) text += fmt::format("{} found a thread asleep, ", facts.asleep);
  if (facts.waiting != 0) text += fmt::format("{} found one waiting for a CPU, ", facts.waiting);
  text += fmt::format("{} gave nothing", lost);
  if (lost != 0) text += fmt::format(" ({})", losses_text(losses));
  return text + fmt::format("; its threads used {} meanwhile", cpu_text(facts));
}

}  // namespace luaspy
