#pragma once
// The programs that an agent samples, and what it knows of them: they come and go.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

class ProcessTree;

class KnownPrograms {
 public:
  using Key = std::pair<int, std::uint64_t>;  // ThreadKey::pid and program
  struct Known {
    std::string executable, command;
    std::vector<std::string> luas;  // "Lua 5.4.6", "LuaJIT 2.1.0-beta3"
  };

  // Says which have come and gone since it was called last.
  void update(ProcessTree& tree);
  const std::map<Key, Known>& all() const { return known_; }
  // Sets what is known of a program that ran at the last update(), or at the one before.
  void describe(const Key& key, Metadata& about) const;

 private:
  std::map<Key, Known> known_, before_;  // before_: those that had gone at the last update()
};

// What its command alone says of a program.
Metadata about_program(int pid, const std::string& command);

}  // namespace luaspy
