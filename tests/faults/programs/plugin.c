/* plugin: a library that victim.c maps and unmaps. */
int plugin_work(int n);
int plugin_work(int n) {
  volatile int sum = 0;
  for (int i = 0; i < n; ++i) sum += i;
  return sum;
}
