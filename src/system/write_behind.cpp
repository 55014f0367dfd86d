#include "system/write_behind.h"

#include <utility>

#include "system/signals.h"

#include "system/signals.h"

namespace luaspy::system {

namespace {

constexpr std::size_t at_once = 1 << 16;

}  // namespace

// Signals are for the threads that wait for them.
WriteBehind::WriteBehind(std::ostream& to, std::size_t most) : std::ostream(nullptr), to_(to), most_(most) {
  rdbuf(&buffer_);
  writer_ = thread_without_signals([this] { write(); });
}

WriteBehind::~WriteBehind() {
  finish();
  {
    const std::lock_guard held(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

std::streamsize WriteBehind::Buffer::xsputn(const char* bytes, std::streamsize count) {
  bytes_.append(bytes, static_cast<std::size_t>(count));
  return bytes_.size() < at_once || owner_.hand_over() ? count : 0;
}

WriteBehind::Buffer::int_type WriteBehind::Buffer::overflow(int_type next) {
  if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
  const char one = traits_type::to_char_type(next);
  return xsputn(&one, 1) == 1 ? next : traits_type::eof();
}

bool WriteBehind::hand_over() {
  std::unique_lock held(lock_);
  changed_.wait(held, [&] { return waiting_.size() < most_ || fails_; });
  waiting_ += buffer_.take();
  changed_.notify_all();
  return !fails_;
}

void WriteBehind::finish() {
  (void)hand_over();
  std::unique_lock held(lock_);
  changed_.wait(held, [&] { return waiting_.empty() && !writes_; });
  if (fails_) setstate(std::ios::badbit);
}

void WriteBehind::write() {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [&] { return !waiting_.empty() || ends_; });
    if (waiting_.empty()) return;
    const std::string bytes = std::exchange(waiting_, {});
    writes_ = true;
    held.unlock();
    to_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    to_.flush();
    held.lock();
    writes_ = false;
    fails_ = !to_;
    changed_.notify_all();
  }
}

}  // namespace luaspy::system
