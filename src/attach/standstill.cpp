#include "attach/standstill.h"

#include <algorithm>

namespace luaspy {

// A thread that was seen asleep may wake before the last one is stopped, and threads create
// threads. So this repeats until a round finds nothing new.
Standstill::Standstill(Target& target) : target_(target) {
  constexpr int most_rounds = 20;
  bool news = true;
  for (int round = 0; round < most_rounds && news; ++round) {
    target.process().forget_threads();
    const auto& threads = target.process().threads();
    news = forget_ended(threads);
    for (const auto& thread : threads) news |= !disturbed_ && add(thread);
    if (!disturbed_) continue;
    resume();  // one does not stop: it may be waiting for those that stand still
    return;
  }
  disturbed_ = news;
}

bool Standstill::forget_ended(const std::vector<std::shared_ptr<Thread>>& threads) {
  const auto is_gone = [&](const HeldThread& member) {
    return std::ranges::none_of(threads, [&](const auto& thread) { return thread.get() == &member.thread(); });
  };
  return std::erase_if(members_, is_gone) != 0;
}

// True if the thread was not standing still before.
bool Standstill::add(const std::shared_ptr<Thread>& thread) {
  const auto known = std::ranges::find_if(members_,
                                          [&](const HeldThread& each) { return &each.thread() == thread.get(); });
  if (known != members_.end() && known->stop() != nullptr) return false;
  const std::uint64_t run_count = known != members_.end() ? thread->run_count() : 0;
  if (run_count != 0 && run_count == known->run_count()) return false;
  HeldThread member(target_, thread);
  if (!member.stands_still()) {
    if (member.stop() == nullptr || member.stop()->outcome() == Stop::Outcome::ended) return false;
    disturbed_ = true;
  }
  if (known != members_.end()) *known = std::move(member);
  else members_.push_back(std::move(member));
  return true;
}

bool Standstill::has_stopped() const {
  return std::ranges::any_of(members_, [](const HeldThread& member) { return member.stop() != nullptr; });
}

bool Standstill::undisturbed() const { return !disturbed_ && std::ranges::all_of(members_, &HeldThread::has_not_run); }

std::chrono::nanoseconds Standstill::resume() {
  std::chrono::nanoseconds longest{};
  for (HeldThread& member : members_) longest = std::max(longest, member.resume());
  target_.tracer().let_go_pending();
  return longest;
}

}  // namespace luaspy
