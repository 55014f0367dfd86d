#pragma once
// Programs to test on, as tests/targets/prepare.sh lists them: a line each in targets.tsv and
// luajits.tsv.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace luaspy {

struct Spec {
  std::string name, version;
  std::vector<std::string> command;
  bool is_luajit() const { return version.starts_with("LuaJIT"); }
};

inline std::vector<Spec> read_specs(const std::string& table) {
  std::vector<Spec> specs;
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> columns;
    std::istringstream stream(line);
    for (std::string column; std::getline(stream, column, '\t');) columns.push_back(column);
    if (columns.size() < 4) continue;
    Spec spec{columns[0], columns[1], {}};
    std::istringstream words(columns[3]);
    for (std::string word; words >> word;) spec.command.push_back(word);
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace luaspy
