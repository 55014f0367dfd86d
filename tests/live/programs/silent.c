/* silent FOLDER: mounts a file system on FOLDER in a mount namespace of its own, with one file, which it opens and
 * reads. Says READY. From then on the file system answers nothing, like one whose server is gone. Needs root. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { file_node = 2 };

static void fail(const char* what) {
  perror(what);
  _exit(1);
}

static struct fuse_attr attributes(uint64_t node) {
  struct fuse_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.ino = node;
  attr.size = 100;
  attr.nlink = 1;
  attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
  return attr;
}

/* Answers until somebody reads the file. What it says of the file is valid for no time at all. */
static void serve(int fuse) {
  static char request[1 << 17];
  for (;;) {
    struct {
      struct fuse_out_header header;
      union {
        struct fuse_init_out init;
        struct fuse_entry_out entry;
        struct fuse_attr_out attr;
        struct fuse_open_out open;
      } is;
    } answer;
    const struct fuse_in_header* asked = (const struct fuse_in_header*)request;
    size_t size = 0;
    if (read(fuse, request, sizeof request) < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      fail("read from /dev/fuse");
    }
    memset(&answer, 0, sizeof answer);
    switch (asked->opcode) {
      case FUSE_INIT:
        answer.is.init.major = FUSE_KERNEL_VERSION;
        answer.is.init.minor = FUSE_KERNEL_MINOR_VERSION;
        answer.is.init.max_write = 1 << 16;
        size = sizeof answer.is.init;
        break;
      case FUSE_LOOKUP:
        answer.is.entry.nodeid = file_node;
        answer.is.entry.attr = attributes(file_node);
        size = sizeof answer.is.entry;
        break;
      case FUSE_GETATTR:
        answer.is.attr.attr = attributes(asked->nodeid);
        size = sizeof answer.is.attr;
        break;
      case FUSE_OPEN:
        size = sizeof answer.is.open;
        break;
      case FUSE_READ:
        puts("READY");
        fflush(stdout);
        for (;;) pause();
      default:
        answer.header.error = -ENOSYS;
    }
    answer.header.unique = asked->unique;
    answer.header.len = (uint32_t)(sizeof answer.header + size);
    if (write(fuse, &answer, answer.header.len) < 0 && errno != ENOENT) fail("write to /dev/fuse");
  }
}

int main(int argc, char** argv) {
  char text[200];
  const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (argc < 2 || fuse < 0) fail("/dev/fuse");
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("unshare");
  snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
  if (mount("silent", argv[1], "fuse", 0, text) != 0) fail("mount");
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(fuse);
  }
  close(fuse);
  snprintf(text, sizeof text, "%s/file", argv[1]);
  const int file = open(text, O_RDONLY);
  if (file < 0 || read(file, text, 10) < 0) fail(text);
  return 0;
}
