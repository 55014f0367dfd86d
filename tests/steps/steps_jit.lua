-- For LuaJIT's compiler; see steps.lua.
local ffi = require("ffi")
ffi.cdef("void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));")
jit.opt.start("hotloop=4", "hotexit=3")

local function jit_leaf(n) -- tailed
  return n + 1
end
local function jit_middle(n)
  local r = jit_leaf(n)
  return r * 2
end
local function jit_loop()
  local s = 0
  for i = 1, 12 do
    s = s + jit_middle(i)
  end
  return s
end
local function jit_branch(n)
  if n % 3 == 0 then
    return n + jit_leaf(n)
  end
  return n
end
local function jit_exits()
  local s = 0
  for i = 1, 30 do
    s = s + jit_branch(i)
  end
  return s
end
local function jit_tail(n) -- tailed
  return jit_leaf(n)
end
local function jit_recursive(n)
  if n == 0 then
    return 0
  end
  return 1 + jit_recursive(n - 1)
end
local function jit_adds(a, b)
  return jit_leaf(1)
end
local jit_object = setmetatable({}, {__add = jit_adds})
local function jit_calls()
  local s = 0
  for i = 1, 14 do
    s = s + jit_tail(i)
    s = s + math.abs(i) + #tostring(i)
    s = s + (jit_object + 1) -- jit_adds
  end
  for i = 1, 8 do
    s = s + jit_recursive(5)
  end
  return s
end
local function jit_thrower(n) -- from: pcall
  if n > 8 then
    error("thrown")
  end
  return n
end
local function jit_errors()
  for i = 1, 12 do
    pcall(jit_thrower, i)
  end
end
local function jit_gives() -- from: wrapped
  for i = 1, 12 do
    coroutine.yield(jit_leaf(i)) -- yield
  end
end
local function jit_coroutines()
  local wrapped = coroutine.wrap(jit_gives) -- unnamed
  for i = 1, 12 do
    wrapped() -- unnamed
  end
end
local function jit_allocates()
  local t
  for i = 1, 20 do
    t = {i, "a" .. i}
    if i % 8 == 0 then collectgarbage("step") end
  end
  return t
end
local function compare(a, b) -- from: qsort qsort_called
  return jit_leaf(a[0]) - jit_leaf(b[0]) -- unnamed __index
end
local numbers = ffi.new("int[4]", {4, 3, 2, 1})
local compare_pointer = ffi.cast("int (*)(const int *, const int *)", compare)
jit.off(compare)
local function qsort_called()
  ffi.C.qsort(numbers, 4, 4, compare_pointer) -- compare unnamed __index
end
jit.off(qsort_called)
local function jit_ffi()
  numbers[0], numbers[3] = numbers[3], numbers[0] -- unnamed __index __newindex
  qsort_called() -- unnamed __index __newindex
end
-- A phase whose traces are compiled again each time.
local function flushed(phase)
  return function() -- jit_phase
    jit.flush()
    phase() -- any_phase
  end
end
return {"jit_loop", flushed(jit_loop), "jit_exits", flushed(jit_exits), "jit_calls", flushed(jit_calls), "jit_errors", flushed(jit_errors),
        "jit_coroutines", flushed(jit_coroutines), "jit_allocates", flushed(jit_allocates), "jit_ffi", flushed(jit_ffi)}
