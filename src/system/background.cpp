#include "system/background.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace luaspy::system {

bool Background::is_busy() {
  if (copy_ == 0) return false;
  int status = 0;
  const pid_t ended = ::waitpid(copy_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
  note_end(ended < 0 ? 0 : status);
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
  while (copy_ != 0) {
    int status = 0;
    const pid_t ended = ::waitpid(copy_, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    note_end(ended < 0 ? 0 : status);
  }
  return !std::exchange(failed_, false);
}

void Background::note_end(int status) {
  copy_ = 0;
  failed_ |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace luaspy::system
