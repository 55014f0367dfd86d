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
    for (const auto& thread : threads) news |= !disturbed_ && add(*thread);
    if (!disturbed_) continue;
    resume();  // one does not stop: it may be waiting for those that stand still
    return;
  }
  disturbed_ = news;
}

// Listing the threads again has destroyed the objects of those that are gone.
bool Standstill::forget_ended(const std::vector<std::shared_ptr<Thread>>& threads) {
  const auto is_gone = [&](const Member& member) {
    return std::ranges::none_of(threads, [&](const auto& thread) { return thread.get() == member.thread; });
  };
  return std::erase_if(members_, is_gone) != 0;
}

// True if the thread was not standing still before.
bool Standstill::add(Thread& thread) {
  const auto known = std::ranges::find(members_, &thread, &Member::thread);
  if (known != members_.end() && known->stop != nullptr) return false;
  const std::uint64_t run_count = thread.run_count();
  if (known != members_.end() && run_count != 0 && run_count == known->run_count) return false;
  Member member{&thread, thread.state(), run_count, nullptr};
  if (member.state.kind == ThreadState::Kind::ended) return false;
  if (member.state.kind == ThreadState::Kind::running) {
    member.stop = std::make_unique<Target::Stop>(target_, thread.tid());
    if (member.stop->outcome() == Target::Stop::Outcome::ended) return false;
    disturbed_ |= member.stop->outcome() != Target::Stop::Outcome::stopped;
  }
  if (known != members_.end()) *known = std::move(member);
  else members_.push_back(std::move(member));
  return true;
}

bool Standstill::has_stopped() const {
  return std::ranges::any_of(members_, [](const Member& member) { return member.stop != nullptr; });
}

bool Standstill::undisturbed() const {
  return !disturbed_ && std::ranges::all_of(members_, [](const Member& member) {
    return member.stop != nullptr ||
           (member.thread->state() == member.state && member.thread->run_count() == member.run_count);
  });
}

std::chrono::nanoseconds Standstill::resume() {
  std::chrono::nanoseconds longest{};
  for (Member& member : members_) {
    if (member.stop != nullptr) longest = std::max(longest, member.stop->resume());
  }
  target_.tracer().let_go_pending();
  return longest;
}

}  // namespace luaspy
