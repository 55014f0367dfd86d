-- allocations.lua WORKLOAD [jit-off], run by programs/allocations.c: allocates at places that make a sampler err. site1 to site4
-- say where they are with at(); what else allocates is site 0.
local at, workload, jit_off = at or function() end, ...
if jit_off == "jit-off" then jit.off() end

local function compute(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end

-- Few allocations for most of the time, and all the others at once.
local function bursts_site1(n) at(1) for i = 1, n do local t = { i } end at(0) end
local function bursts_site2(n) at(2) for i = 1, n do local s = ("x"):rep(100 + i % 7) .. i end at(0) end
local function bursts_site3(n) at(3) for i = 1, n do compute(100) local f = function() return i end end at(0) end
local function bursts() compute(60000) bursts_site1(3000) bursts_site2(500) compute(10000) bursts_site3(40) end

-- Loops that are longer than any burst of traps.
local function loops_site1(n) at(1) for i = 1, n do local t = { i, i, k = i } end at(0) end
local function loops_site2(n) at(2) for i = 1, n do local f = function() return i end end at(0) end
local function loops_site3(n) at(3) for i = 1, n do local t = {} for j = 1, 200 do t[j] = j end end at(0) end
local function loops() loops_site1(20000) loops_site2(20000) loops_site3(100) compute(100000) end

-- Computing between strings.
local count = 0
local function strings_site1() at(1) local s = "n" .. count at(0) return s end
local function strings_site2(s) at(2) local t, u = { s }, { s } at(0) return t, u end
local function strings_site3(s) at(3) local v = ("%s:%d"):format(s, count) at(0) return v end
local function strings()
  count = count + 1
  local s = strings_site1()
  compute(150)
  strings_site2(s)
  compute(20)
  strings_site3(s)
end

-- Closures and tables in functions that C calls.
local words = ("alpha be gamma delta "):rep(20)
local function callbacks_site1()
  at(1)
  words:gsub("%a+", function(word) local f = function() return word end return nil end)
  at(0)
end
local function callbacks_site2(t) at(2) for j = 1, 50 do t[j] = (j * 7919) % 101 end at(0) end
local function callbacks_site3(t) at(3) table.sort(t, function(a, b) local p = { a } return p[1] < b end) at(0) end
local function callbacks() local t = {} callbacks_site1() callbacks_site2(t) callbacks_site3(t) end

-- Coroutines, and what they allocate.
local function body() for i = 1, 5 do local t = { i } coroutine.yield(t) end end
local function coroutines_site2(resume) at(2) for i = 1, 5 do resume() end at(0) end
local function coroutines_site1() at(1) local resume = coroutine.wrap(body) at(0) return resume end
local function coroutines_site3() at(3) for i = 1, 10 do local s = "abc" .. i end at(0) end
local function coroutines() coroutines_site2(coroutines_site1()) coroutines_site3() compute(200) end

local round = ({ bursts = bursts, loops = loops, strings = strings, callbacks = callbacks, coroutines = coroutines })[workload]
while true do round() end
