/* confine RULE... -- COMMAND: executes it under a seccomp filter (seccomp(2)). RULE: CALL=EPERM, CALL=EACCES,
   CALL=ENOSYS; or, ending the process with SIGSYS: CALL=KILL, network (sockets of any kind), internet (those that are
   not local), writes (into files), harm (to processes: all ptrace requests except those of luaspy, writing memory,
   signals to others). */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter filter[400];
static unsigned short size;

static void add(unsigned short code, unsigned value, unsigned char if_true, unsigned char if_false) {
  filter[size++] = (struct sock_filter){code, if_true, if_false, value};
}
static void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0); }
static void answer(unsigned action) { add(BPF_RET | BPF_K, action, 0, 0); }
static size_t argument(int number) {
  return offsetof(struct seccomp_data, args) + 8 * (size_t)number;
} /* its lower half */

static void refuse(long call, unsigned action) {
  load(offsetof(struct seccomp_data, nr));
  add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
  answer(action);
}

/* Unless the argument, masked, is one of the allowed values. */
static void refuse_unless(long call, int number, unsigned mask, const unsigned* allowed, int count) {
  load(offsetof(struct seccomp_data, nr));
  add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, (unsigned char)(count + 3));
  load(argument(number));
  add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
  for (int i = 0; i < count; ++i) add(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (unsigned char)(count - i), 0);
  answer(SECCOMP_RET_KILL_PROCESS);
}

static int add_rule(const char* rule) {
  static const struct {
    const char* name;
    long call;
  } calls[] = {{"ptrace", SYS_ptrace},
               {"process_vm_readv", SYS_process_vm_readv},
               {"openat2", SYS_openat2},
               {"memfd_create", SYS_memfd_create},
               {"sched_setattr", SYS_sched_setattr},
               {"sched_setscheduler", SYS_sched_setscheduler},
               {"sched_setaffinity", SYS_sched_setaffinity},
               {"perf_event_open", SYS_perf_event_open},
               {"setitimer", SYS_setitimer}};
  const unsigned all = 0xffffffff, kill = SECCOMP_RET_KILL_PROCESS;
  if (strcmp(rule, "network") == 0) {
    const long all_kinds[] = {SYS_socket, SYS_socketpair, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_io_uring_setup};
    for (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; ++i) refuse(all_kinds[i], kill);
    return 1;
  }
  if (strcmp(rule, "internet") == 0)
    return refuse_unless(SYS_socket, 0, all, (const unsigned[]){AF_UNIX}, 1), refuse(SYS_io_uring_setup, kill), 1;
  if (strcmp(rule, "writes") == 0) {
    const unsigned reading[] = {O_RDONLY};
    refuse_unless(SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, reading, 1);
    refuse_unless(SYS_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, reading, 1);
    const long others[] = {SYS_creat, SYS_rename,  SYS_renameat, SYS_renameat2, SYS_unlink,  SYS_unlinkat,
                           SYS_mkdir, SYS_mkdirat, SYS_link,     SYS_linkat,    SYS_symlink, SYS_symlinkat,
                           SYS_chmod, SYS_fchmod,  SYS_fchmodat, SYS_truncate};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) refuse(others[i], kill);
    return 1;
  }
  if (strcmp(rule, "harm") == 0) {
    const unsigned requests[] = {PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, PTRACE_GETREGSET},
                   self = (unsigned)getpid();
    refuse_unless(SYS_ptrace, 0, all, requests, 4);
    refuse_unless(SYS_tgkill, 0, all, &self, 1);
    const long others[] = {SYS_process_vm_writev,
                           SYS_kill,
                           SYS_tkill,
                           SYS_rt_sigqueueinfo,
                           SYS_rt_tgsigqueueinfo,
                           SYS_pidfd_send_signal,
                           SYS_process_madvise,
                           SYS_setuid,
                           SYS_setresuid,
                           SYS_setns,
                           SYS_bpf};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) refuse(others[i], kill);
    return 1;
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    const size_t length = strlen(calls[i].name);
    if (strncmp(rule, calls[i].name, length) != 0 || rule[length] != '=') continue;
    const char* const how = rule + length + 1;
    const unsigned error = strcmp(how, "EPERM") == 0 ? EPERM : strcmp(how, "EACCES") == 0 ? EACCES : ENOSYS;
    refuse(calls[i].call, strcmp(how, "KILL") == 0 ? kill : SECCOMP_RET_ERRNO | error);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  int i = 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (!add_rule(argv[i])) return fprintf(stderr, "confine: no rule %s\n", argv[i]), 125;
  }
  answer(SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {size, filter};
  if (i + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return perror("confine"), 125;
  execvp(argv[i + 1], argv + i + 1);
  return perror(argv[i + 1]), 125;
}
