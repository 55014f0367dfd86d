#pragma once
// A terminal: lines go out, keys come in. The one place that knows curses. All of it is for one
// thread, but for leave_at_once().

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "top/top_lines.h"

namespace luaspy {

class TopScreen {
 public:
  // Can standard output show a screen, and are there keys to be had?
  static bool is_possible();
  // Takes the terminal over. nullptr: it can't.
  static std::unique_ptr<TopScreen> open();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;
  // The terminal is as it was.
  ~TopScreen();

  Charset charset() const;
  TopSize size() const;
  void show(const std::vector<TopLine>& lines);

  enum class Event { none, key, resized, gone };
  // Waits for a key, at most so long. `gone`: the terminal is.
  Event wait(std::chrono::milliseconds patience, TopKey& key);

  // Gives the terminal back for a while, and takes it again.
  void suspend();
  void resume();

  // The same as the destructor, for a signal handler that ends the program.
  static void leave_at_once();

 private:
  struct State;
  explicit TopScreen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace luaspy
