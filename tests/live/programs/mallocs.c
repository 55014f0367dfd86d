/* mallocs [THREADS [ROUNDS]]: allocates and frees in the main thread and in others, so that there are free chunks of
   every kind: in fastbins, in threads' caches, in bins, at the top, in full heaps of arenas, and mapped alone. Then
   prints what mallinfo2() says: arena, hblks, hblkhd, fsmblks, uordblks, fordblks; how many bytes of chunks the threads
   have freed last, which their caches keep; and READY. Waits for its input to end, and does nothing meanwhile. Has also
   memory that it has only read, which counts as not resident. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { small = 20000, large = 12, mapped = 5 };
static pthread_barrier_t done;
static char output[4096];
static size_t cached[64], rounds = 1;
static void* volatile alone; /* so that the compiler leaves nothing out */

static void use_once(size_t number) {
  static const size_t sizes[] = {24, 40, 72, 104, 200, 520, 1000, 1500, 4000, 9000};
  void** kept = malloc(small * sizeof *kept);
  void* last[5];
  size_t i;
  for (i = 0; i < small; ++i) {
    kept[i] = malloc(sizes[(i * 7 + number) % 10]);
    memset(kept[i], 'x', sizes[(i * 7 + number) % 10]);
  }
  for (i = 0; i < small; i += 3) free(kept[i]);
  for (i = 1; i < small; i += 9) free(kept[i]);
  for (i = 0; i < mapped; ++i) memset(alone = malloc((200 + 100 * i) << 10), 'm', 1000 * (i + 1));
  for (i = 64; i <= 8192; i *= 128) memset(alone = aligned_alloc(i, 300 << 10), 'a', 1000);
  /* of a size that nothing else has */
  for (i = 0; i < 5; ++i) last[i] = malloc(888);
  cached[number] = 0;
  for (i = 0; i < 5; ++i) cached[number] += malloc_usable_size(last[i]) + 8, free(last[i]);
  /* more than a cache takes: the others go to fastbins, where a malloc has these */
  for (i = 2; i < 1000; i += 9) free(kept[i]);
}

static void use(size_t number) {
  size_t i;
  for (i = 0; i < rounds; ++i) use_once(number);
}

static void only_read(void) {
  enum { size = 1 << 22, page = 4096 };
  const volatile char* const bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t i;
  for (i = 0; bytes != MAP_FAILED && i < size; i += page) (void)bytes[i];
}

static void* work(void* argument) {
  use((size_t)argument);
  pthread_barrier_wait(&done);
  pause();
  return NULL;
}

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? (size_t)atoi(argv[1]) : 0;
  struct mallinfo2 info;
  size_t i, bytes = 0;
  if (argc > 2) rounds = (size_t)atoi(argv[2]);
  setvbuf(stdout, output, _IOFBF, sizeof output);
  pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
  for (i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void*)(i + 1))) return 1;
  }
  use(0);
  only_read();
  pthread_barrier_wait(&done);
  for (i = 0; i <= threads; ++i) bytes += cached[i];
  info = mallinfo2();
  printf("%zu %zu %zu %zu %zu %zu %zu\nREADY\n", info.arena, info.hblks, info.hblkhd, info.fsmblks, info.uordblks,
         info.fordblks, bytes);
  fflush(stdout);
  while (read(0, output, 1) > 0) continue;
  return 0;
}
