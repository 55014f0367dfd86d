#include "stepped.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/x86_64/registers.h"

namespace luaspy::steps {
namespace {

constexpr int system_call_stop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD (ptrace(2))

}  // namespace

// At the same addresses each time, so that a run can be repeated.
Stepped::Stepped(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    personality(ADDR_NO_RANDOMIZE);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = out[0];
  std::string said;
  char c;
  while (!said.ends_with("READY\n") && read(output_, &c, 1) == 1) said += c;
  fcntl(output_, F_SETFL, O_NONBLOCK);
  memory_.emplace(pid_);
  Result<Process> process = Process::open(pid_);
  if (!process) return;
  process_.emplace(std::move(*process));
  int status = 0;
  good_ = ptrace(PTRACE_SEIZE, pid_, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0 &&
          ptrace(PTRACE_INTERRUPT, pid_, 0, 0) == 0 && waitpid(pid_, &status, __WALL) == pid_ && WIFSTOPPED(status) &&
          write(input_, "\n", 1) == 1;
}

Stepped::~Stepped() {
  if (input_ >= 0) close(input_);
  if (output_ >= 0) close(output_);
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, __WALL);
}

bool Stepped::resume(int request, int& event) {
  int status = 0;
  good_ = good_ && ptrace(static_cast<__ptrace_request>(request), pid_, 0, signal_) == 0 &&
          waitpid(pid_, &status, __WALL) == pid_ && WIFSTOPPED(status);
  if (!good_) return false;
  event = WSTOPSIG(status);
  signal_ = event == SIGTRAP || event == system_call_stop ? 0 : event;
  good_ = !system::read_registers(pid_, registers_);
  return good_;
}

std::string Stepped::run_to_write() {
  drain();
  int event = 0;
  bool entry = true;
  while (resume(PTRACE_SYSCALL, event)) {
    if (event != system_call_stop) continue;
    // At the entry the kernel has set rax to -ENOSYS (arch/x86/entry/entry_64.S).
    constexpr auto not_answered = static_cast<Address>(-38);
    entry = registers_[x86_64::rax] == not_answered;
    if (!entry) continue;
    __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
        info.entry.nr == SYS_write && info.entry.args[0] == STDOUT_FILENO) {
      const std::string written = what_is_written();
      resume(PTRACE_SYSCALL, event);
      return written;
    }
  }
  return {};
}

bool Stepped::step(std::string& written) {
  int event = 0;
  written.clear();
  if (!resume(PTRACE_SINGLESTEP, event)) return false;
  constexpr std::uint16_t syscall_instruction = 0x050f;
  if (registers_[x86_64::rax] == SYS_write && registers_[x86_64::rdi] == STDOUT_FILENO &&
      memory().get<std::uint16_t>(registers_.pc()) == syscall_instruction) {
    written = what_is_written();
  }
  return true;
}

std::string Stepped::what_is_written() {
  std::string text(std::min<std::size_t>(registers_[x86_64::rdx], 64), ' ');
  return memory().read(registers_[x86_64::rsi], std::as_writable_bytes(std::span(text))) ? text : "?";
}

void Stepped::drain() {
  char bytes[4096];
  while (read(output_, bytes, sizeof bytes) > 0) {
  }
}

}  // namespace luaspy::steps
