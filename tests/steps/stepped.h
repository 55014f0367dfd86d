#pragma once
// A program that is run one machine instruction at a time.

#include <optional>
#include <string>
#include <vector>

#include "attach/live_memory.h"
#include "attach/process.h"

namespace luaspy::steps {

// It says READY and waits for a line on its standard input; from then on it is traced. It ends with
// the object.
class Stepped {
 public:
  explicit Stepped(std::vector<std::string> words);
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;
  ~Stepped();

  // False if it has not started, or has ended.
  bool good() const { return good_; }
  Process& process() { return *process_; }
  const Memory& memory() const { return *memory_; }

  // Lets it run until it is about to write to its standard output; returns the text. Empty if it
  // has ended.
  std::string run_to_write();
  // Executes one instruction. A write to its standard output is not executed: then `written` is the
  // text.
  bool step(std::string& written);
  // Valid until the next step.
  const Registers& registers() const { return registers_; }

 private:
  bool resume(int request, int& event);
  std::string what_is_written();
  void drain();

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  bool good_ = false;
  int signal_ = 0;
  std::optional<Process> process_;
  std::optional<LiveMemory> memory_;
  Registers registers_;
};

}  // namespace luaspy::steps
