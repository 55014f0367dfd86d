#pragma once
// Files that somebody else fetches, which may take seconds: waited for before a recording begins, never during it.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace luaspy {

// Any thread may call it. An object of which fetch_later() was called must live as long as the program: its thread is
// not waited for at the end.
class DebugFiles {
 public:
  using Fetch = std::function<std::string(const std::string& id)>;  // the path of what was fetched; "": there is none
  explicit DebugFiles(Fetch fetch) : fetch_(std::move(fetch)) {}
  DebugFiles(const DebugFiles&) = delete;
  DebugFiles& operator=(const DebugFiles&) = delete;

  // The file of that id; "": there is none, or it has not come yet. Each is asked for once: a server that does not
  // answer costs its timeout.
  std::string path_of(const std::string& id);
  // From now on path_of() does not wait: a thread of its own fetches what is not known.
  void fetch_later();
  // How many files have come that path_of() did not have when it was asked.
  std::uint64_t come() const { return come_; }

 private:
  static void* main(void* self);
  void run();

  const Fetch fetch_;
  std::mutex mutex_;
  bool later_ = false;
  std::map<std::string, std::string> known_;
  std::deque<std::string> wanted_;
  std::condition_variable is_wanted_;
  std::atomic<std::uint64_t> come_ = 0;
};

}  // namespace luaspy
