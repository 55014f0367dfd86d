/* counters: four threads count forever, one sleeps in pause(), and now and then a thread is created that counts once
   and ends. Prints the addresses of the counters, and READY when all count. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { threads = 4 };
static volatile unsigned long counters[threads + 1];

static void* count_once(void* unused) {
  ++counters[threads];
  return unused;
}

static void* count(void* argument) {
  volatile unsigned long* counter = argument;
  for (;;) {
    pthread_t once;
    if (++*counter % 100000 == 0 && pthread_create(&once, NULL, count_once, NULL) == 0) pthread_join(once, NULL);
  }
  return NULL;
}

static void* sleep_on(void* unused) {
  for (;;) pause();
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  for (int i = 0; i < threads; ++i) pthread_create(&thread, NULL, count, (void*)&counters[i]);
  for (int i = 0; i < threads; ++i) {
    while (counters[i] == 0) {
    }
  }
  printf("%p\nREADY\n", (void*)counters);
  fflush(stdout);
  pause();
}
