// capture PID FROM: stops the first thread of a process that runs Lua, and prints what luaspy read
// and the resulting stack, as a file for the replay tests. Check the stack before you keep the
// file: the test will expect it.

#include <iostream>

#include "sampling/capture_stop.h"

namespace {

using namespace luaspy;

int run(int pid, const char* from) {
  Result<Process> process = Process::open(pid);
  if (!process) return std::cerr << process.error().text << '\n', 1;
  Target target(std::move(*process), std::chrono::seconds(2));
  const Result<SavedStop> stop = capture_stop(target, pid, from);
  if (!stop) return std::cerr << stop.error().text << '\n', 1;
  save_stop(*stop, std::cout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 3 ? run(std::atoi(argv[1]), argv[2]) : (std::cerr << "usage: capture PID FROM\n", 2);
}
