#include "traceback.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>

namespace luaspy::live {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// lauxlib.c, luaL_traceback; ldblib.c, db_errorfb in 5.1; lj_debug.c, luaL_traceback.
std::vector<Line> parse_traceback(const std::vector<std::string>& text) {
  static const std::regex lua_frame("^\t(.*?):(?:(-?[0-9]+):)? in (.*)$"),
      c_frame("^\t\\[(?:C|builtin#[0-9]+)\\]: (?:in )?(.*)$"), place("<.*:([0-9]+)>$"),
      skipped("^\t\\.\\.\\.(?:\t\\(skipping .*)?$"),  // a long path is cut to "\t...LAST PART:LINE:"
      quoted("(?:function|method|field|upvalue|local|global|metamethod|hook) '([^']*)'");
  std::vector<Line> lines;
  std::smatch match;
  for (const std::string& line : text) {
    std::string what;
    if (line.starts_with("\t(...tail calls...)") || line == "\t(tail call): ?")
      lines.push_back({Line::Kind::tail_calls});
    else if (std::regex_match(line, skipped)) lines.push_back({Line::Kind::skipped});
    else if (std::regex_match(line, match, c_frame)) lines.push_back({Line::Kind::c}), what = match[1];
    else if (std::regex_match(line, match, lua_frame))
      lines.push_back({Line::Kind::lua, base_name(match[1]), {}, match[2].length() != 0 ? std::stoi(match[2]) : -1}),
          what = match[3];
    else continue;
    if (std::regex_search(what, match, quoted)) lines.back().name = match[1];
    if (what.starts_with("main chunk")) lines.back().name = "main chunk";
    if (std::regex_search(what, match, place)) lines.back().defined = std::stoi(match[1]);
  }
  return lines;
}

std::string text(const std::vector<Line>& lines) {
  static const char* const names[] = {"Lua", "C", "(tail calls)", "..."};
  std::string result;
  for (const Line& line : lines)
    result += fmt::format("  {} {} {}:{}\n", names[static_cast<int>(line.kind)], line.name, line.file, line.line);
  return result;
}

namespace {

// Depending on the version, tracebacks qualify names by module ("string.gsub") or not; some have no
// name where luaspy has one. luaspy calls a main chunk "main chunk" whatever variable it was called
// through. 5.4.0 to 5.4.2 call __lt "order".
bool same_name(const std::string& theirs, const std::string& ours) {
  if (theirs.empty() || theirs == "?" || theirs == "order" || ours == "main chunk") return true;
  if (theirs.find("for generator") != theirs.npos || theirs == "for iterator") return ours == "for iterator";
  const auto last = [](const std::string& name) { return name.substr(name.find_last_of(".:") + 1); };
  const auto plain = [&](std::string name) {
    return name = last(name), name.starts_with("__") ? name.substr(2) : name;
  };
  return plain(theirs) == plain(ours);
}

std::string escaped(const std::string& name) {
  static const std::regex special(R"([.^$|()\[\]{}*+?\\])");
  return std::regex_replace(name, special, R"(\$&)");
}

// Tracebacks have the name that the caller uses, luaspy that of the definition: the line where the
// function begins defines it. A chunk that is a string is somewhere in states.lua.
bool is_defined_as(const Line& ours) {
  if (ours.kind != Line::Kind::lua || ours.defined <= 0) return false;
  const bool is_file = !ours.file.starts_with("[string");
  std::ifstream file(std::string(LUASPY_WORKLOADS) + "/" + (is_file ? ours.file : "states.lua"));
  std::string text;
  if (is_file)
    for (int line = 0; line < ours.defined; ++line) std::getline(file, text);
  else text.assign(std::istreambuf_iterator<char>(file), {});
  const std::string name = escaped(ours.name.substr(ours.name.find_last_of(".:") + 1));
  return !name.empty() &&
         std::regex_search(
             text, std::regex(fmt::format(R"(\bfunction\s+([\w.]*[.:])?{0}\s*\(|\b{0}\s*=\s*function\b)", name)));
}

}  // namespace

bool same(const Line& theirs, const Line& ours) {
  if (theirs.kind != ours.kind) return false;
  if (theirs.kind == Line::Kind::lua && ((theirs.line != ours.line && theirs.line != -1) ||
                                         (theirs.file != ours.file && theirs.file.find("...") == std::string::npos)))
    return false;
  if (theirs.defined != -1 && theirs.defined != ours.defined) return false;
  return same_name(theirs.name, ours.name) || is_defined_as(ours);
}

bool same_stack(const std::vector<Line>& theirs, const std::vector<Line>& ours) {
  const auto skip = std::find_if(theirs.begin(), theirs.end(),
                                 [](const Line& line) { return line.kind == Line::Kind::skipped; });
  const auto head = static_cast<std::size_t>(skip - theirs.begin()),
             tail = skip == theirs.end() ? 0 : static_cast<std::size_t>(theirs.end() - skip) - 1;
  if (skip == theirs.end() ? ours.size() != theirs.size() : ours.size() < head + tail) return false;
  return std::equal(theirs.begin(), skip, ours.begin(), same) &&
         std::equal(theirs.end() - static_cast<std::ptrdiff_t>(tail), theirs.end(),
                    ours.end() - static_cast<std::ptrdiff_t>(tail), same);
}

}  // namespace luaspy::live
