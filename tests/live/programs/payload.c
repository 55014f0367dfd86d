/* payload: a library that the share test calls through LuaJIT's FFI. */
int c_payload(int n);

__attribute__((noinline)) int c_payload(int n) { return n < 2 ? n : c_payload(n - 1) + c_payload(n - 2); }
