-- ffi_callbacks.lua [FIRST]: many named C types, numbered from FIRST on, and a callback that C has called: its arguments
-- stay in the state of the FFI. Says READY, and waits.
local ffi = require("ffi")
local first = tonumber((...)) or 1
for i = first, first + 600 do ffi.cdef(("typedef struct kept_%d { int x; } kept_t_%d;"):format(i, i)) end
ffi.cdef("void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));")
local values = ffi.new("int[8]", { 5, 3, 8, 1, 7, 2, 6, 4 })
local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b) return a[0] - b[0] end)
ffi.C.qsort(values, 8, 4, compare)
assert(values[0] == 1 and values[7] == 8)
collectgarbage()
collectgarbage()
io.write("READY\n")
io.flush()
io.read()
