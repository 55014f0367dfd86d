#include "sampling/tick_account.h"

#include <algorithm>
#include <limits>

namespace luaspy {

using system::to_ns;

void TickAccount::account(const TickMoment& moment, std::chrono::nanoseconds interval, const Thread& thread,
                          const Thread::Schedule* now, bool slept, UnseenTicks& unseen) {
  Thread::Schedule asked;
  const auto ask_now = [&] {
    if (now == nullptr) asked = thread.schedule(), now = &asked;
  };
  if (number_ == -1) {
    number_ = moment.number - 1;
    skipped_ = moment.skipped;
    at_ = std::max(at_, moment.woke - interval);
    ask_now();
    record(*now, moment.woke);
  }
  passed_ns_ = to_ns(moment.woke - at_);
  const std::int64_t missed = std::max<std::int64_t>(moment.number - number_ - 1 - (moment.skipped - skipped_), 0);
  if (missed != 0) {
    // It counts as executing at the share of them that it was on a CPU.
    ask_now();
    const std::int64_t since = to_ns(moment.woke - schedule_at_),
                       ran = std::clamp<std::int64_t>(now->on_cpu - schedule_.on_cpu, 0, since);
    const std::int64_t executed = now->runs == 0 || since == 0 ? missed : (missed * ran + since / 2) / since;
    (moved_ ? unseen.elsewhere : unseen.late) += executed;
    (slept_ ? unseen.idle : unseen.waited) += missed - executed;
  }
  if (now != nullptr) record(*now, moment.woke);
  moved_ = false;
  skipped_ = moment.skipped;
  number_ = moment.number;
  at_ = moment.woke;
  slept_ = slept;
}

void TickAccount::end() { number_ = std::numeric_limits<std::int64_t>::max(); }

}  // namespace luaspy
