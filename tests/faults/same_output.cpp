// A deterministic Lua program writes the same bytes whether it is profiled or not: on every Lua in
// the tables of tests/targets/prepare.sh.

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "profiles.h"
#include "support/luaspy.h"

namespace luaspy::faults {
namespace {

struct Program {
  std::string name;
  Words command;
};

void add_table(const std::string& file, bool luajit, std::vector<Program>& programs) {
  std::ifstream in(std::string(LUASPY_TARGETS) + "/" + file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name, version, kind, command, word;
    std::getline(fields, name, '\t'), std::getline(fields, version, '\t'), std::getline(fields, kind, '\t'),
        std::getline(fields, command, '\t');
    Program program{name, {}};
    std::istringstream words(command);
    while (words >> word) program.command.push_back(word);
    const bool has_option = luajit && program.command.back().ends_with("/luajit");
    if (!has_option) {
      programs.push_back(program);
      continue;
    }
    for (const char* const option : {"-jon", "-joff"}) {
      // A build without the compiler does not have -jon.
      if (name.ends_with("-nojit") && std::string_view(option) == "-jon") continue;
      Program with = program;
      with.name += std::string(" ") + option;
      with.command.push_back(option);
      programs.push_back(with);
    }
  }
}

const std::vector<Program>& programs() {
  static const std::vector<Program> all = [] {
    std::vector<Program> found;
    add_table("targets.tsv", false, found);
    add_table("luajits.tsv", true, found);
    if (found.empty()) give_up("no programs in the tables of " LUASPY_TARGETS);
    return found;
  }();
  return all;
}

std::string output_of(const Program& program) {
  static std::map<std::string, std::string> known;
  std::string& text = known[program.name];
  if (!text.empty()) return text;
  const Folder folder;
  Words command = program.command;
  command.push_back(LUASPY_TESTS "/faults/programs/output.lua");
  Child child(command, {.output = folder.path("out"), .errors = folder.path("err")});
  if (child.wait(60) != 0) give_up(program.name + ": " + read_file(folder.path("err")));
  return text = read_file(folder.path("out"));
}

}  // namespace

void has_the_same_output(Campaign& campaign) {
  static std::size_t next = 0;
  std::set<std::string> seen;
  while (campaign.next()) {
    const Program& program = programs()[next++ / 2 % programs().size()];
    const bool fast = next % 2 == 0;
    const std::string right = output_of(program);
    if (right.find("done\n") == std::string::npos) give_up(program.name + " does not finish its output");
    Folder folder;
    Words words = {"record",  "-r", fast ? "5000" : "1000", "--max-stopped", "100", "-f", "folded", "-o",
                   "profile", "--"};
    words.insert(words.end(), program.command.begin(), program.command.end());
    words.push_back(LUASPY_TESTS "/faults/programs/output.lua");
    Luaspy luaspy(words, folder, {.output = folder.path("out")});
    const std::optional<int> status = luaspy.process().wait(60);
    if (status != 0)
      campaign.harmed(fmt::format("{}: status {}: {}", program.name, status.value_or(-1), luaspy.errors()));
    else if (read_file(folder.path("out")) != right) campaign.harmed(fmt::format("{}: another output", program.name));
    else if (luaspy.profile().empty()) campaign.lost(program.name + ": no profile");
    if (fast) seen.insert(program.name);
  }
  campaign.remark(fmt::format("{} of {} Luas at both rates", seen.size(), programs().size()));
}

}  // namespace luaspy::faults
