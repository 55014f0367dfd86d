#pragma once
// A target of a campaign: programs/victim.c in one of its modes, with Lua 5.4 or LuaJIT, and
// whether it is unharmed.

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
  // Which process luaspy is to look at.
  std::string pid() const;
  const Board& board() const { return *board_; }

  // What was harmed; nullopt: nothing. It lives, no thread is stopped or traced, it goes on, and
  // every result was the right one.
  std::optional<std::string> harm(bool may_be_stopped = false) const;
  // How many of its threads are traced now, and how many stand still.
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

// A victim of one mode for round after round: a new one each so many rounds, of the other Lua, and
// whenever one was harmed.
class Victims {
 public:
  Victims(Campaign& campaign, std::string mode) : campaign_(campaign), mode_(std::move(mode)) {}
  ~Victims();
  Victim& next();
  // The end of a round: is it unharmed, and is nothing of luaspy left?
  void check();
  std::uint64_t events();

 private:
  void replace();

  Campaign& campaign_;
  std::string mode_;
  std::unique_ptr<Victim> victim_;
  Lua lua_ = Lua::luajit;
  int rounds_ = 0;
  std::uint64_t events_ = 0;  // of those before
};

std::string victim_program(Lua lua);
// Makes the file and maps it, for as long as the campaign lasts.
Board* map_board(const std::string& path);
// A process of luaspy that should have ended.
std::optional<std::string> left_over();

}  // namespace luaspy::faults
