#include "system/standard_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <streambuf>

namespace luaspy::system {
namespace {

class StandardOutput : public std::streambuf {
 public:
  StandardOutput() { setp(bytes_.data(), bytes_.data() + bytes_.size()); }
  // Of the first write that failed.
  const Failure& failure() const { return failure_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
    return sputc(traits_type::to_char_type(next));
  }
  int sync() override {
    const Failure failure = write_all(1, {pbase(), static_cast<std::size_t>(pptr() - pbase())});
    setp(bytes_.data(), bytes_.data() + bytes_.size());  // what could not be written is lost, and the stream says so
    if (failure && !failure_) failure_ = failure;
    return failure ? -1 : 0;
  }

 private:
  std::array<char, 1 << 16> bytes_{};
  Failure failure_;
};

StandardOutput& standard_output() {
  static auto* const output = new StandardOutput;  // never deleted: std::cout is flushed at the very end
  return *output;
}

}  // namespace

void open_standard_output() { std::cout.rdbuf(&standard_output()); }

Result<void> flush_standard_output(std::string_view what) {
  std::cout.flush();
  if (std::cout) return {};
  const Failure& failure = standard_output().failure();
  if (failure.code == EPIPE) return Error{Cause::reader_gone, fmt::format("The reader of {} has gone.", what)};
  return cannot_write(what, failure);
}

Error cannot_write(std::string_view what, const Failure& failure) {
  if (failure.code == EPIPE)
    return {Cause::output, fmt::format("Cannot write all of {}: its reader has closed it.", what)};
  return {Cause::output, fmt::format("Cannot write all of {}: {}.", what, failure.text())};
}

void end_without_reader() {
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::sigprocmask(SIG_UNBLOCK, &pipe, nullptr);
  ::raise(SIGPIPE);
  ::_exit(128 + SIGPIPE);
}

}  // namespace luaspy::system
