// Core files (core): the input is a core file, all of it hostile.

#include "attach/core_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "stack/stack_reader.h"

namespace luaspy::fuzz {
namespace {

void look_at(const CoreFile& core) {
  expect_printable(core.command(), 500, "a core's command");
  WalkLimits limits;
  limits.count_left_out = true;
  StackTable stacks;
  StackReader reader(core, core, stacks, {}, limits);
  if (reader.images().empty()) reader.try_all_layouts();
  int threads = 0;
  for (const CoreFile::Thread& thread : core.threads()) {
    if (threads++ == 4) break;
    const StackReader::Finished* const finished = reader.look(thread.registers);
    if (finished == nullptr) continue;
    const Stack stack = stacks.frames_of(finished->sample.stack);
    expect(stack.size() < 10'000, "a stack is bounded");
    for (const Frame& frame : stack) {
      expect_printable(frame.name, 2000, "a frame's name");
      expect_printable(frame.file, 2000, "a frame's file");
    }
  }
  for (const CoreFile::MissingFile& file : core.missing_files())
    expect(file.path.size() < 1 << 20, "a path is bounded");
}

}  // namespace

void core(Bytes bytes) {
  const int file = ::memfd_create("core", MFD_CLOEXEC);
  expect(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
         "the input is a file");
  const Result<std::unique_ptr<CoreFile>> core = CoreFile::open({fmt::format("/proc/self/fd/{}", file), "", ""});
  if (core) look_at(**core);
  else expect_printable(core.error().text, 1000, "an error");
  ::close(file);
}

}  // namespace luaspy::fuzz
