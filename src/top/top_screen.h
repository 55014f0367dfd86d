#pragma once
// A terminal: draws lines, reads keys. The only place that uses curses. Everything except
// leave_at_once() is for one thread.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "top/top_lines.h"

namespace luaspy {

class TopScreen {
 public:
  // Whether standard output can show a screen, and keys can be read.
  static bool is_possible();
  // Takes over the terminal. nullptr: that is impossible.
  static std::unique_ptr<TopScreen> open();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;
  // Restores the terminal.
  ~TopScreen();

  Charset charset() const;
  TopSize size() const;
  void show(const std::vector<TopLine>& lines);

  enum class Event { none, key, resized, gone };
  // Waits for a key for at most `patience`. `gone`: the terminal no longer exists.
  Event wait(std::chrono::milliseconds patience, TopKey& key);

  // suspend() gives the terminal back for a while, resume() takes it over again.
  void suspend();
  void resume();

  // Does what the destructor does, for a signal handler that ends the program.
  static void leave_at_once();

 private:
  struct State;
  explicit TopScreen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace luaspy
