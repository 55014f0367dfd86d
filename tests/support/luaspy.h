#pragma once
// The program under test, in a folder of its own: what it wrote, said and left.

#include "support/child.h"

namespace luaspy::faults {

class Luaspy {
 public:
  // Words named "profile" become a path in the folder, which outlives this.
  Luaspy(const Words& words, const Folder& folder, Child::Files files = {});

  Child& process() { return process_; }
  const Child& process() const { return process_; }
  std::string errors() const { return read_file(errors_); }
  std::string profile() const { return read_file(profile_); }
  const std::string& profile_path() const { return profile_; }

  // Where its threads are, by gdb if there is one: for a luaspy that does not end.
  std::string where() const;

  // Do all its threads show this state within a second? False if not, or if it has ended.
  bool await_state(char letter) const;
  // It has begun to record: signals end it as they should. False if it ended before.
  bool await_recording() const;

 private:
  std::string profile_, errors_;
  Child process_;
};

}  // namespace luaspy::faults
