#pragma once
// A stream that does not wait for its file: a slow disk, or a pipe whose reader has stopped reading, holds up a thread
// of its own.

#include <condition_variable>
#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>

namespace luaspy::system {

class WriteBehind : public std::ostream {
 public:
  // What waits to be written. With more, flush() waits until there is less.
  static constexpr std::size_t most_behind = std::size_t{64} << 20;

  // `to` must outlive it, and nobody else may use it meanwhile.
  explicit WriteBehind(std::ostream& to, std::size_t most = most_behind);
  // Writes what is left.
  ~WriteBehind() override;

  // flush() hands over what was written so far. Once `to` has failed, it fails.
  // Waits until everything is in `to`, and that is flushed.
  void finish();

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(WriteBehind& owner) : owner_(owner) {}
    std::string take() { return std::exchange(bytes_, {}); }

   protected:
    std::streamsize xsputn(const char* bytes, std::streamsize count) override;
    int_type overflow(int_type next) override;
    int sync() override { return owner_.hand_over() ? 0 : -1; }

   private:
    WriteBehind& owner_;
    std::string bytes_;
  };
  bool hand_over();
  void write();

  Buffer buffer_{*this};
  std::ostream& to_;
  const std::size_t most_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::string waiting_;  // protected by lock_, as what follows
  bool writes_ = false, fails_ = false, ends_ = false;
  std::thread writer_;
};

}  // namespace luaspy::system
