#pragma once
// The program under test, in its own folder: its files, its output, and what it left behind.

#include "support/child.h"

namespace luaspy::faults {

using namespace tests;

// It may be refused for a while, or see nothing: only statuses of docs/exit-codes.md are right.
inline bool is_answer(int status) { return status == 0 || (status >= 3 && status <= 11 && status != 8); }

class Luaspy {
 public:
  // The word "profile" becomes a path in the folder, which must outlive this object.
  Luaspy(const Words& words, const Folder& folder, Child::Files files = {});

  Child& process() { return process_; }
  const Child& process() const { return process_; }
  std::string errors() const { return read_file(errors_); }
  std::string profile() const { return read_file(profile_); }
  const std::string& profile_path() const { return profile_; }

  // The stacks of its threads, by gdb if it is available: for a luaspy that does not end.
  std::string where() const;

  // Whether all its threads show this state within a second. False if not, or if it has ended.
  bool await_state(char letter) const;
  // Waits until it records: from then on signals end it properly. False if it ended before.
  bool await_recording() const;

 private:
  std::string profile_, errors_;
  Child process_;
};

}  // namespace luaspy::faults
