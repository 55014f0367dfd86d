/* execs WHO: two threads, "first" and "second", work; once a line comes, thread WHO executes the program again, which
   says AGAIN and continues to work. Prints the second thread's number and READY. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *self, *who;
static volatile int asked;

static void spin(const char* name) {
  for (;;) {
    if (!asked || strcmp(name, who) != 0) continue;
    execl(self, self, "again", (char*)NULL);
    _exit(1);
  }
}

static void* second(void* number) {
  *(volatile int*)number = gettid();
  spin("second");
  return NULL;
}

static void* ask(void* unused) {
  (void)unused;
  if (getchar() == '\n') asked = 1;
  return NULL;
}

int main(int count, char** words) {
  self = words[0], who = count > 1 ? words[1] : "";
  pthread_t thread, asker;
  static volatile int number;
  if (strcmp(who, "again") == 0) {
    puts("AGAIN");
    fflush(stdout);
    for (;;) {
    }
  }
  if (pthread_create(&thread, NULL, second, (void*)&number) != 0) return 1;
  while (number == 0) {
  }
  if (pthread_create(&asker, NULL, ask, NULL) != 0) return 1; /* before READY: after that any thread may be stopped */
  printf("%d\nREADY\n", number);
  fflush(stdout);
  spin("first");
}
