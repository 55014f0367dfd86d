#pragma once
// A target of a campaign: programs/victim.c in one of its modes, with Lua 5.4 or LuaJIT. It detects
// whether the target was harmed.

#include <memory>
#include <optional>

#include "campaign.h"
#include "programs/board.h"

namespace luaspy::faults {

enum class Lua { puc, luajit };

class Victim {
 public:
  Victim(Lua lua, const std::string& mode, const std::string& argument = {});
  ~Victim();

  Child& process() { return *process_; }
  // The process that luaspy profiles.
  std::string pid() const;
  const Board& board() const { return *board_; }

  // What was harmed; nullopt: nothing. Then it lives, no thread is stopped or traced, it makes
  // progress, and every result was right.
  std::optional<std::string> harm(bool may_be_stopped = false) const;
  // How many of its threads are traced now, and how many are stopped.
  struct Held {
    int traced = 0, stopped = 0;
  };
  Held held() const;

 private:
  pid_t looked_at() const;
  std::optional<std::string> still_held() const;

  Folder folder_;
  Board* board_ = nullptr;
  std::unique_ptr<Child> process_;
};

// A victim of one mode for many rounds: it is replaced by one with the other Lua after some rounds,
// and whenever it was harmed.
class Victims {
 public:
  Victims(Campaign& campaign, std::string mode) : campaign_(campaign), mode_(std::move(mode)) {}
  ~Victims();
  Victim& next();
  // At the end of a round: checks that it is unharmed, and that no process of luaspy is left.
  void check();
  std::uint64_t events();

 private:
  void replace();

  Campaign& campaign_;
  std::string mode_;
  std::unique_ptr<Victim> victim_;
  Lua lua_ = Lua::luajit;
  int rounds_ = 0;
  std::uint64_t events_ = 0;  // of previous victims
};

std::string victim_program(Lua lua);
// Creates the file and maps it until the campaign ends.
Board* map_board(const std::string& path);
// A process of luaspy that should have ended.
std::optional<std::string> left_over();

}  // namespace luaspy::faults
