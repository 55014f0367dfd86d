#include "system/background.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "system/calls.h"

namespace luaspy::system {

bool Background::is_busy() {
  if (copy_ == 0) return false;
  const WaitStatus status = wait_for_end(copy_);
  if (status.kind != WaitStatus::Kind::ended) return true;
  copy_ = 0;
  failed_ |= status.exit_status != 0;
  return false;
}

void Background::start(const std::function<bool()>& work) {
  const pid_t copy = ::fork();
  if (copy < 0) {
    failed_ |= !work();
    return;
  }
  if (copy == 0) ::_exit(work() ? 0 : 1);
  copy_ = copy;
}

bool Background::finish() {
  while (is_busy()) await_end(copy_, std::chrono::seconds(1));
  return !std::exchange(failed_, false);
}

}  // namespace luaspy::system
