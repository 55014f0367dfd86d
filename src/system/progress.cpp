#include "system/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/display_text.h"
#include "base/say.h"
#include "system/terminal.h"

namespace luaspy::system {
namespace {

constexpr std::chrono::milliseconds pause_between(500);

}  // namespace

ProgressLine::ProgressLine()
    : shown_(terminal_of(2).rewrites_lines), next_(std::chrono::steady_clock::now() + pause_between) {}

bool ProgressLine::is_due() { return shown_ && std::chrono::steady_clock::now() >= next_; }

void ProgressLine::show(const std::string& text) {
  if (!shown_) return;
  next_ = std::chrono::steady_clock::now() + pause_between;
  // A line that wraps could not be erased.
  const int width = terminal_of(2).width;
  say("\r{}\x1b[K", width > 1 ? fit(text, width - 1, Cut::right, Charset::ascii) : text);
  std::fflush(stderr);
  is_there_ = true;
}

void ProgressLine::clear() {
  if (std::exchange(is_there_, false)) say("\r\x1b[K");
}

std::string progress_bar(double part) {
  constexpr std::size_t width = 24;
  const auto full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(width));
  return '[' + std::string(full, '#') + std::string(width - full, '.') + "] ";
}

}  // namespace luaspy::system
