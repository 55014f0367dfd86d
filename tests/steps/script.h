#pragma once
// The functions of a Lua script that follows the conventions of steps.lua, and which of them may
// call which.

#include <map>
#include <set>
#include <string>
#include <vector>

namespace luaspy::steps {

struct Function {
  std::string name;
  int first_line = 0, last_line = 0;  // 0, …: the main chunk
  std::set<std::string> from;         // names of the functions that call it from lines without its name; "*": any
  bool tailed = false;                // a tail call may call it
};

class Scripts {
 public:
  explicit Scripts(const std::vector<std::string>& files);

  // nullptr if no function begins in this line.
  const Function* find(const std::string& file, int line_defined) const;
  // Whether the line contains the name of a function.
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
