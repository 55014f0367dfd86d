/* guarded: forbids others to trace it, says READY, and waits for the end of its standard input. */
#include <stdio.h>
#include <sys/prctl.h>

int main(void) {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  puts("READY");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
