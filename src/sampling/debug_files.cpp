#include "sampling/debug_files.h"

#include <pthread.h>

#include "attach/own_cpu.h"

namespace luaspy {

std::string DebugFiles::path_of(const std::string& id) {
  std::unique_lock lock(mutex_);
  const auto [place, added] = known_.try_emplace(id);
  if (!added) return place->second;
  if (!later_) return place->second = fetch_(id);
  wanted_.push_back(id);
  is_wanted_.notify_one();
  return "";
}

void DebugFiles::fetch_later() {
  const std::lock_guard lock(mutex_);
  if (later_) return;
  pthread_t thread{};
  later_ = start_thread(thread, main, this);
  if (later_) pthread_detach(thread);
}

void* DebugFiles::main(void* self) {
  static_cast<DebugFiles*>(self)->run();
  return nullptr;
}

void DebugFiles::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    is_wanted_.wait(lock, [&] { return !wanted_.empty(); });
    const std::string id = wanted_.front();
    wanted_.pop_front();
    lock.unlock();
    std::string path = fetch_(id);
    lock.lock();
    if (path.empty()) continue;
    known_[id] = std::move(path);
    ++come_;
  }
}

}  // namespace luaspy
