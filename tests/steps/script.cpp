#include "script.h"

#include <fstream>
#include <sstream>

namespace luaspy::steps {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_name_character(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_name_character(text[end]))) return true;
  }
  return false;
}

// "local function NAME(", "NAME = function(", or "return function(…) -- NAME".
std::string name_in(const std::string& line) {
  const std::size_t keyword = line.find("function");
  std::size_t at = keyword + std::string("function").size();
  if (line[at] == ' ') {
    std::string name;
    for (++at; is_name_character(line[at]); ++at) name += line[at];
    return name;
  }
  const std::size_t equals = line.rfind('=', keyword);
  std::istringstream words(equals != std::string::npos ? line
                                                       : line.substr(std::min(line.find("-- "), line.size() - 2) + 2));
  std::string name;
  words >> name;
  return name;
}

}  // namespace

Scripts::Scripts(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    Script& script = scripts_[file.substr(file.rfind('/') + 1)];
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) script.lines.push_back(line);
    const int count = static_cast<int>(script.lines.size());
    script.functions[0] = {"main chunk", 0, count, {"*"}, false};
    for (int number = 1; number <= count; ++number) {
      const std::string& line = script.lines[static_cast<std::size_t>(number - 1)];
      const std::string code = line.substr(0, line.find("--"));
      if (code.find("function(") == std::string::npos && code.find("function ") == std::string::npos) continue;
      Function function{name_in(line), number, number, {}, has_word(line, "tailed")};
      // The function ends at the first "end" with the same indentation.
      const std::string end = std::string(line.find_first_not_of(' '), ' ') + "end";
      while (function.last_line < count && script.lines[static_cast<std::size_t>(function.last_line)] != end)
        ++function.last_line;
      ++function.last_line;
      if (const std::size_t from = line.find("from:"); from != std::string::npos) {
        std::istringstream words(line.substr(from + 5));
        for (std::string word; words >> word;) function.from.insert(word);
      }
      script.functions[number] = function;
    }
  }
}

const Function* Scripts::find(const std::string& file, int line_defined) const {
  const auto script = scripts_.find(file);
  if (script == scripts_.end()) return nullptr;
  const auto function = script->second.functions.find(line_defined);
  return function != script->second.functions.end() ? &function->second : nullptr;
}

const std::string& Scripts::line(const std::string& file, int line) const {
  static const std::string none;
  const auto script = scripts_.find(file);
  const auto index = static_cast<std::size_t>(line - 1);
  return script != scripts_.end() && line > 0 && index < script->second.lines.size() ? script->second.lines[index]
                                                                                     : none;
}

bool Scripts::mentions(const std::string& file, int line, const std::string& name) const {
  return has_word(this->line(file, line), name);
}

}  // namespace luaspy::steps
