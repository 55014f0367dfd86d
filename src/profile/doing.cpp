#include "profile/doing.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace luaspy {

Doing doing_of(const Profile::Situation& situation) {
  if (situation.state == Sample::State::sleeping) return Doing::asleep;
  if (situation.state == Sample::State::waiting) return Doing::without_cpu;
  switch (activity_of(situation.vm_state)) {
    case Activity::lua:
      return Doing::interpreting;
    case Activity::machine_code:
      return Doing::machine_code;
    case Activity::c:
      return Doing::c;
    case Activity::collecting:
      return Doing::collecting;
    case Activity::compiling:
      return Doing::compiling;
    case Activity::no_lua:
      break;
  }
  return Doing::no_lua;
}

std::int64_t Doings::sum() const { return std::accumulate(costs_.begin(), costs_.end(), std::int64_t{0}); }

std::vector<Doing> Doings::order() const {
  std::vector<Doing> order;
  for (std::size_t i = 0; i < doing_count; ++i) {
    if (costs_[i] != 0) order.push_back(static_cast<Doing>(i));
  }
  std::ranges::stable_sort(order, std::greater(), [&](Doing doing) { return (*this)[doing]; });
  return order;
}

std::vector<Doings> doings_by_thread(const Profile& profile, By by) {
  std::vector<Doings> doings(profile.threads().size());
  for (const auto& [at, amount] : profile.counts())
    doings[at.thread][doing_of(profile.situations()[at.situation])] += cost(amount, by);
  return doings;
}

std::string running_text(const Doings& doings) {
  const std::int64_t all = doings.sum(), slept = doings[Doing::asleep], waited = doings[Doing::without_cpu];
  if (slept + waited == 0) return "";
  std::string text = fmt::format("ran {:.1f} %", percent(all - slept - waited, all));
  if (slept != 0) text += fmt::format(", slept {:.1f} %", percent(slept, all));
  if (waited != 0) text += fmt::format(", waited for a CPU {:.1f} %", percent(waited, all));
  return text;
}

Doings doings_of(const Profile& profile, By by) {
  Doings doings;
  for (const auto& [at, amount] : profile.counts())
    doings[doing_of(profile.situations()[at.situation])] += cost(amount, by);
  return doings;
}

}  // namespace luaspy
