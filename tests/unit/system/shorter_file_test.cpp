#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "system/signals.h"

namespace luaspy::shorter_file_test {
namespace {

// Runs in its own process. Returns 0 if the file's contents are readable while they exist, and read
// as zeros after that; else the signal or status that ended the process.
int read_while_it_gets_shorter(bool outlive) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);
    if (outlive) system::outlive_shorter_files();
    const int file = memfd_create("file", MFD_CLOEXEC);
    const std::string text(3 * 4096, 'x');
    if (write(file, text.data(), text.size()) < 0) _exit(2);
    const volatile char* const bytes = static_cast<char*>(mmap(nullptr, text.size(), PROT_READ, MAP_PRIVATE, file, 0));
    const bool before = bytes[0] == 'x' && bytes[5000] == 'x';
    if (ftruncate(file, 4096) != 0) _exit(2);
    _exit(before && bytes[0] == 'x' && bytes[5000] == 0 && bytes[3 * 4096 - 1] == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a mapped file that gets shorter", "[unit]") {
  const int without = read_while_it_gets_shorter(false);
  CHECK((WIFSIGNALED(without) && WTERMSIG(without) == SIGBUS));
  CHECK(read_while_it_gets_shorter(true) == 0);
}

}  // namespace luaspy::shorter_file_test
