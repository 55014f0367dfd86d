/* reload LIBRARY: loads a library and unloads it again, forever; it is there for 30 ms, and away for 60 ms. Says READY
   when it has done so once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void work(long ms) {
  const long until = now_ms() + ms;
  while (now_ms() < until) {
  }
}

int main(int count, char** arguments) {
  for (int round = 0; count > 1; ++round) {
    void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 1;
    work(30);
    dlclose(library);
    if (round == 0) puts("READY"), fflush(stdout);
    work(60);
  }
  return 1;
}
