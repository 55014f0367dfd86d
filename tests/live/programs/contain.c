/* contain ROOT COMMAND...: executes it as a container's first process: its own mounts, process numbers and root
   (pivot_root(2)), so that its paths do not exist outside; without root's rights also in its own user namespace, in
   which it is root. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY);
  const int failed = file < 0 || write(file, text, strlen(text)) < 0;
  close(file);
  return failed;
}

static int become_root(void) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "0 %d 1", geteuid());
  snprintf(groups, sizeof groups, "0 %d 1", getegid());
  return unshare(CLONE_NEWUSER) != 0 || write_text("/proc/self/setgroups", "deny") ||
         write_text("/proc/self/uid_map", users) || write_text("/proc/self/gid_map", groups);
}

int main(int argc, char** argv) {
  if (argc < 3 || (geteuid() != 0 && become_root())) return perror("contain: user namespace"), 125;
  if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return perror("contain: unshare"), 125;
  const pid_t child = fork();
  if (child != 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const char* const root = argv[1];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount(root, root, NULL, MS_BIND | MS_REC, NULL) != 0 ||
      chdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
    return perror("contain: root"), 125;
  execv(argv[2], argv + 2);
  return perror(argv[2]), 125;
}
