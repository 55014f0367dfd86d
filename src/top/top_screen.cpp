#include "top/top_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>  // it has macros "lines" and "columns"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string_view>

#include "system/calls.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

// What leave_at_once() needs, prepared in advance: a signal handler may only call functions such as
// write(2) and tcsetattr(3).
struct Restore {
  termios settings{};
  int terminal = -1;
  std::array<char, 128> text{};
  std::size_t size = 0;
};
Restore restore;
std::atomic<bool> restore_wanted = false;

void append(const char* capability) {
  if (capability == nullptr || capability == reinterpret_cast<const char*>(-1)) return;
  const std::size_t size = std::strlen(capability);
  if (restore.size + size > restore.text.size()) return;
  std::memcpy(restore.text.data() + restore.size, capability, size);
  restore.size += size;
}

bool wants_colours() { return !system::forbids_colours() && has_colors(); }

constexpr short ground_pair(bool selected) { return selected ? 32 : 0; }

struct Colour {
  short rich, poor;  // a colour of 256, one of 8; -1: the terminal's default
  attr_t more = 0;
};

Colour colour_of(TopStyle style) {
  switch (style) {
    case TopStyle::plain:
      return {-1, -1};
    case TopStyle::bold:
      return {-1, -1, A_BOLD};
    case TopStyle::dim:
      return {245, -1};
    case TopStyle::heading:
      return {75, COLOR_CYAN, A_BOLD};
    case TopStyle::sorted:
      return {75, COLOR_CYAN, A_BOLD | A_UNDERLINE};
    case TopStyle::warning:
      return {215, COLOR_YELLOW, A_BOLD};
    case TopStyle::key:
      return {75, COLOR_CYAN, A_BOLD};
    case TopStyle::hot:
      return {209, COLOR_RED, A_BOLD};
    case TopStyle::warm:
      return {179, COLOR_YELLOW};
    case TopStyle::lua:
      return {75, COLOR_BLUE};
    case TopStyle::c:
      return {114, COLOR_GREEN};
    case TopStyle::machine_code:
      return {141, COLOR_MAGENTA};
    case TopStyle::collecting:
      return {209, COLOR_RED};
    case TopStyle::compiling:
      return {179, COLOR_YELLOW};
    case TopStyle::no_lua:
      return {109, COLOR_CYAN};
    case TopStyle::waiting:
      return {180, COLOR_YELLOW};
    case TopStyle::idle:
      return {243, -1};
    case TopStyle::native:
      return {109, -1};
    case TopStyle::kernel:
      return {175, COLOR_MAGENTA};
    case TopStyle::marker:
      return {245, -1};
  }
  return {-1, -1};
}

constexpr short style_count = static_cast<short>(TopStyle::marker) + 1;
static_assert(style_count < ground_pair(true));

void make_pairs() {
  start_color();
  use_default_colors();
  const bool rich = COLORS >= 256 && COLOR_PAIRS > 2 * ground_pair(true);
  for (short style = 0; style < style_count; ++style) {
    const Colour colour = colour_of(static_cast<TopStyle>(style));
    init_pair(static_cast<short>(style + 1), rich ? colour.rich : colour.poor, -1);
    if (!rich) continue;
    const short readable = colour.rich < 0                          ? short{255}
                           : colour.rich > 237 && colour.rich < 246 ? short{250}
                                                                    : colour.rich;  // greys
    init_pair(static_cast<short>(style + 1 + ground_pair(true)), readable, 237);
  }
}

attr_t without_colours(TopStyle style) {
  switch (style) {
    case TopStyle::heading:
      return A_BOLD;
    case TopStyle::sorted:
      return A_BOLD | A_UNDERLINE;
    case TopStyle::bold:
    case TopStyle::hot:
    case TopStyle::key:
    case TopStyle::warning:
      return A_BOLD;
    default:
      return A_NORMAL;
  }
}

TopKey key_of(bool is_function_key, wint_t code) {
  using Kind = TopKey::Kind;
  if (is_function_key) {
    switch (code) {
      case KEY_UP:
        return {Kind::up, {}};
      case KEY_DOWN:
        return {Kind::down, {}};
      case KEY_PPAGE:
        return {Kind::page_up, {}};
      case KEY_NPAGE:
        return {Kind::page_down, {}};
      case KEY_HOME:
        return {Kind::home, {}};
      case KEY_END:
        return {Kind::end, {}};
      case KEY_ENTER:
        return {Kind::enter, {}};
      case KEY_BACKSPACE:
        return {Kind::backspace, {}};
      default:
        return {};
    }
  }
  switch (code) {
    case L'\r':
    case L'\n':
      return {Kind::enter, {}};
    case 27:
      return {Kind::escape, {}};
    case 8:
    case 127:
      return {Kind::backspace, {}};
    default:
      break;
  }
  if (code < 32) return {};
  std::array<char, MB_LEN_MAX + 1> bytes{};
  std::mbstate_t state{};
  const std::size_t size = std::wcrtomb(bytes.data(), static_cast<wchar_t>(code), &state);
  if (size == static_cast<std::size_t>(-1)) return {};
  return {Kind::character, std::string(bytes.data(), size)};
}

}  // namespace

struct TopScreen::State {
  std::FILE* keys = nullptr;  // the terminal, opened for reading if standard input is something else
  SCREEN* screen = nullptr;
  bool colours = false, rich = false;
  Charset charset = Charset::ascii;
};

TopScreen::TopScreen(std::unique_ptr<State> state) : state_(std::move(state)) {}

bool TopScreen::is_possible() {
  const char* const type = std::getenv("TERM");
  if (type == nullptr || *type == '\0' || std::string_view(type) == "dumb" || isatty(1) != 1) return false;
  if (isatty(0) != 1 && !system::open_file("/dev/tty", O_RDONLY | O_NOCTTY)) return false;
  int problem = 0;
  if (setupterm(nullptr, 1, &problem) != OK) return false;
  const bool moves = cursor_address != nullptr;
  del_curterm(cur_term);
  return moves;
}

std::unique_ptr<TopScreen> TopScreen::open() {
  auto state = std::make_unique<State>();
  state->charset = system::charset_of_locale();
  if (isatty(0) != 1) state->keys = std::fopen("/dev/tty", "re");
  if (isatty(0) != 1 && state->keys == nullptr) return nullptr;
  restore = {};
  restore.terminal = 1;
  tcgetattr(1, &restore.settings);
  set_escdelay(25);  // ms to wait after Esc for the rest of a key sequence
  state->screen = newterm(nullptr, stdout, state->keys != nullptr ? state->keys : stdin);
  if (state->screen == nullptr) return nullptr;
  append(tigetstr("sgr0")), append(tigetstr("cnorm")), append(tigetstr("rmkx")), append(tigetstr("rmcup"));
  restore_wanted = true;
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  state->colours = wants_colours();
  if (state->colours) make_pairs();
  state->rich = state->colours && COLORS >= 256 && COLOR_PAIRS > 2 * ground_pair(true);
  return std::unique_ptr<TopScreen>(new TopScreen(std::move(state)));
}

TopScreen::~TopScreen() {
  if (isendwin() == FALSE) endwin();
  restore_wanted = false;
  delscreen(state_->screen);
  if (state_->keys != nullptr) std::fclose(state_->keys);
}

Charset TopScreen::charset() const { return state_->charset; }
TopSize TopScreen::size() const { return {COLS, LINES, state_->colours}; }

void TopScreen::show(const std::vector<TopLine>& shown) {
  erase();
  for (std::size_t i = 0; i < shown.size() && static_cast<int>(i) < LINES; ++i) {
    move(static_cast<int>(i), 0);
    for (const TopSpan& span : shown[i].spans) {
      attr_t attributes = state_->colours ? colour_of(span.style).more : without_colours(span.style);
      short pair = state_->colours ? static_cast<short>(static_cast<short>(span.style) + 1) : short{0};
      if (shown[i].selected && state_->rich) pair = static_cast<short>(pair + ground_pair(true)), attributes |= A_BOLD;
      else if (shown[i].selected) attributes = A_REVERSE, pair = 0;
      attr_set(attributes, pair, nullptr);
      addnstr(span.text.data(), static_cast<int>(span.text.size()));
    }
  }
  attr_set(A_NORMAL, 0, nullptr);
  refresh();
}

TopScreen::Event TopScreen::wait(std::chrono::milliseconds patience, TopKey& key) {
  const auto read = [&](wint_t& code) { return get_wch(&code); };
  wint_t code = 0;
  int answer = read(code);  // curses may already have read a key
  if (answer == ERR) {
    pollfd input{fileno(state_->keys != nullptr ? state_->keys : stdin), POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(patience.count()));
    if (ready > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Event::gone;
    answer = read(code);  // a change of the size is reported here, too
  }
  if (answer == ERR) return Event::none;
  if (answer == KEY_CODE_YES && code == KEY_RESIZE) return Event::resized;
  key = key_of(answer == KEY_CODE_YES, code);
  return Event::key;
}

void TopScreen::suspend() {
  endwin();
  restore_wanted = false;
}

void TopScreen::resume() {
  restore_wanted = true;
  clearok(stdscr, TRUE);
  refresh();
}

void TopScreen::leave_at_once() {
  if (!restore_wanted) return;
  (void)!::write(restore.terminal, restore.text.data(), restore.size);
  (void)tcsetattr(restore.terminal, TCSANOW, &restore.settings);
}

}  // namespace luaspy
