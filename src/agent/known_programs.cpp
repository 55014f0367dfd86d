#include "agent/known_programs.h"

#include <utility>

#include "attach/program_name.h"
#include "base/say.h"
#include "base/text.h"
#include "base/version.h"
#include "sampling/process_tree.h"

namespace luaspy {

void KnownPrograms::update(ProcessTree& tree) {
  constexpr std::size_t most_of_command = 80;
  std::map<Key, Known> now;
  before_.clear();
  for (const auto& session : tree.sessions()) {
    const Key key = {session->pid(), session->program()};
    const auto before = known_.find(key);
    Known& known = now[key];
    known.executable = program_of(key.first);
    known.command = session->command();
    if (before != known_.end() && !known.executable.starts_with('/'))
      known.executable = before->second.executable;  // it ends just now
    for (const LuaImage& image : session->sampler().reader().images()) known.luas.push_back(image.name());
    if (before == known_.end())
      say("luaspy agent: samples process {} ({})\n", key.first, printable(known.command, most_of_command));
  }
  for (auto& [key, known] : known_) {
    if (now.contains(key)) continue;
    say("luaspy agent: process {} ({}) has ended\n", key.first, printable(base_name(known.executable)));
    before_[key] = std::move(known);
  }
  known_ = std::move(now);
}

void KnownPrograms::describe(const Key& key, Metadata& about) const {
  for (const auto* const all : {&known_, &before_}) {
    const auto known = all->find(key);
    if (known == all->end()) continue;
    about.executable = known->second.executable;
    about.luas = known->second.luas;
  }
}

Metadata about_program(int pid, const std::string& command) {
  Metadata about;
  about.luaspy = version;
  about.pid = pid;
  about.command = command;
  about.executable = command.substr(0, command.find(' '));
  about.lua_mapped = true;
  return about;
}

}  // namespace luaspy
