#pragma once
// A terminal for luaspy top, and a program for it to look at.

#include <fmt/format.h>

#include <functional>
#include <string>

#include "support/harness.h"

namespace luaspy::live {

// `hot` takes 70 % of its CPU time and `cold` the rest, by its own clock, which it reads rarely.
inline constexpr const char* hot_and_cold = R"(
local clock, rounds = os.clock, jit and 5000000 or 500000   -- some ms
local function hot() local n = 0 for i = 1, rounds do n = n + i * 0.5 end return n end
local function cold() local n = 0 for i = 1, rounds do n = n + i * 0.5 end return n end
local function spin(seconds, is_hot)
  local stop = clock() + seconds
  repeat if is_hot then hot() else cold() end until clock() >= stop
end
io.write(arg[1] or 'READY', '\n') io.flush()
local stop = clock() + tonumber(arg[2] or 60)
while clock() < stop do spin(0.07, true) spin(0.03, false) end
io.stderr:write(arg[3] or '', '\n')
os.exit(tonumber(arg[4] or 0))
)";

std::string joined(const Words& words);
// The first line with that text; "": there is none.
std::string line_with(const std::string& screen, const std::string& text);

// A shell in a terminal (tmux).
class Terminal {
 public:
  Terminal(int width, int height, const std::string& environment = {});
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { tmux({"kill-server"}); }

  void type(const std::string& line);
  void press(const std::string& key) { run_tmux({"send-keys", key}); }
  void resize(int width, int height);
  std::string screen(bool styled = false);
  // Whether a program's screen (the alternate one) is shown, and the cursor is hidden.
  bool is_taken() { return run_tmux({"display-message", "-p", "#{alternate_on} #{cursor_flag}"}) == "1 0\n"; }
  bool is_as_before() { return run_tmux({"display-message", "-p", "#{alternate_on} #{cursor_flag}"}) == "0 1\n"; }

  // Waits until the screen shows what is wanted, and returns it.
  std::string await(const std::string& what, const std::function<bool(const std::string&)>& holds);
  std::string await_text(const std::string& text);
  std::string await_match(const std::string& pattern);
  // The shell's first child that is a luaspy.
  pid_t luaspy_pid() const;

  Folder folder;

 private:
  Finished tmux(const Words& arguments) const;
  std::string run_tmux(const Words& arguments) const;
  pid_t shell_ = 0;
};

// A Lua program that works until it is ended, or for some seconds of CPU time.
struct Busy {
  explicit Busy(const char* name = lua54, const std::string& seconds = "60")
      : running([&] {
          Words command = target(name).command;
          command.insert(command.end(), {folder.write("busy.lua", hot_and_cold), "READY", seconds});
          return command;
        }()) {
    running.read_until("READY");
  }
  std::string top(const std::string& options = "-r 200") const {
    return fmt::format("{} top --max-stopped 100 {} --pid {}", luaspy_program, options, running.pid());
  }

  Folder folder;
  Running running;
};

}  // namespace luaspy::live
