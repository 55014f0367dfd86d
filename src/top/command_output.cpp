#include "top/command_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "system/signals.h"

namespace luaspy {

Result<CommandOutput> CommandOutput::divert() {
  CommandOutput output;
  const char* const folder = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/luaspy-top-XXXXXX", folder != nullptr && *folder != '\0' ? folder : "/tmp");
  system::Failure failure;
  const FileDescriptor written = system::make_temporary_file(path, failure);
  if (!written)
    return Error{Cause::output,
                 fmt::format("Cannot write {}, the file for the command's output: {}.", path, failure.text())};
  output.path_ = path;
  output.file_ = system::open_file(path, O_RDONLY);
  const FileDescriptor nothing = system::open_file("/dev/null", O_RDONLY);
  for (int standard = 0; standard < 3; ++standard) {
    if (!system::is_terminal(standard)) continue;
    output.before_[static_cast<std::size_t>(standard)] = FileDescriptor(::fcntl(standard, F_DUPFD_CLOEXEC, 3));
    ::dup2(standard == 0 ? nothing.number() : written.number(), standard);
  }
  return output;
}

CommandOutput::~CommandOutput() {
  give_back();
  if (!path_.empty()) ::unlink(path_.c_str());
}

void CommandOutput::give_back() {
  for (int standard = 0; standard < 3; ++standard) {
    FileDescriptor& before = before_[static_cast<std::size_t>(standard)];
    if (before) ::dup2(before.number(), standard);
    before = FileDescriptor();
  }
}

void CommandOutput::pour() {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(file_.number(), buffer.data(), buffer.size());
    if (count <= 0) return;
    for (ssize_t written = 0; written < count;) {
      const ssize_t more = ::write(1, buffer.data() + written, static_cast<std::size_t>(count - written));
      if (more > 0) written += more;
      else if (system::end_requested() != 0) return;  // the terminal is gone, or accepts nothing
    }
  }
}

}  // namespace luaspy
