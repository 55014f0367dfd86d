#pragma once
// What a Lua script that follows the conventions of steps.lua says of itself: its functions, and
// who may call whom.

#include <map>
#include <set>
#include <string>
#include <vector>

namespace luaspy::steps {

struct Function {
  std::string name;
  int first_line = 0, last_line = 0;  // 0, …: the main chunk
  std::set<std::string> from;         // names of the functions that call it without saying so in the line; "*": any
  bool tailed = false;                // a tail call may call it
};

class Scripts {
 public:
  explicit Scripts(const std::vector<std::string>& files);

  // nullptr if there is none that begins in this line.
  const Function* find(const std::string& file, int line_defined) const;
  // Does the line say the name of a function?
  bool mentions(const std::string& file, int line, const std::string& name) const;
  const std::string& line(const std::string& file, int line) const;

 private:
  struct Script {
    std::vector<std::string> lines;
    std::map<int, Function> functions;
  };
  std::map<std::string, Script> scripts_;  // by the file's name without its folder
};

}  // namespace luaspy::steps
