-- qsort.lua: a coroutine calls C's qsort, which calls compare.
local ffi = require("ffi")
ffi.cdef("void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));")

local function key(x)
  local y = 0
  for i = 1, 20 do y = (y + x * i) % 1009 end
  return y
end
local function compare(a, b)
  local x, y = key(a[0]), key(b[0])
  return x - y
end
local callback = ffi.cast("int (*)(const int *, const int *)", compare)
local values = ffi.new("int[?]", 300)

local function fill() for i = 0, 299 do values[i] = i * 7919 % 301 end end
local function sort() ffi.C.qsort(values, 300, 4, callback) end
jit.off(sort) -- a function that calls C which calls back must not be compiled
local function body()
  while true do
    fill()
    sort()
    coroutine.yield()
  end
end
local resume = coroutine.wrap(body)

resume()
io.stdout:write("READY\n")
io.stdout:flush()
while true do resume() end
