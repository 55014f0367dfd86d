// capture PID FROM: stops the first thread of a process that runs Lua, prints what luaspy read of
// it, and the stack it made of it, as a file for the replay tests. Look at the stack before you
// keep it: the test will hold what it says.

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
