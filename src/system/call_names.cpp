#include "system/call_names.h"

#include <fmt/format.h>
#include <sys/syscall.h>

namespace luaspy {
namespace {

struct Entry {
  long number;
  const char* name;
};

// System calls that can block. The numbers depend on the machine (sys/syscall.h).
constexpr Entry entries[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_open, "open"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_poll, "poll"},
    {SYS_ppoll, "ppoll"},
    {SYS_select, "select"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, "epoll_pwait2"},
#endif
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_pause, "pause"},
    {SYS_futex, "futex"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_sendfile, "sendfile"},
    {SYS_splice, "splice"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_preadv, "preadv"},
    {SYS_pwritev, "pwritev"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_vfork, "vfork"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_munmap, "munmap"},
    {SYS_mmap, "mmap"},
    {SYS_madvise, "madvise"},
    {SYS_exit, "exit"},
    {SYS_exit_group, "exit_group"},
};

}  // namespace

std::string system_call_name(long number) {
  if (number < 0) return "[page fault]";
  for (const Entry& entry : entries) {
    if (entry.number == number) return fmt::format("[{}]", entry.name);
  }
  return fmt::format("[system call {}]", number);
}

}  // namespace luaspy
