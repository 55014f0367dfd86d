-- collector.lua [SECONDS]: full collections, steps of one, a finalizer that works, automatic collection and a loop without garbage take turns
-- for SECONDS of CPU time (5; 0: forever). Then it prints how much of it the collector and Lua have used, without the turns
-- of steps and of automatic collection, in which both work.
local seconds = tonumber(arg[1] or 5)
local live = {}
for i = 1, 10000 do live[i] = { i } end
local clock = os.clock

local function arithmetic(n)
  local x = 0.5
  for i = 1, n do x = x * 1.0000001 + i % 3 end
  return x
end

local finalizing = 0
local text = ("a"):rep(20000)
local function finalizer()
  local start = clock()
  arithmetic(50000)
  for _ = 1, 5 do text:find("b", 1, true) end
  finalizing = finalizing + clock() - start
end

local function collect() collectgarbage() end
local function steps() for _ = 1, 50 do collectgarbage("step", 1) end end
local function finalize()
  if newproxy then
    getmetatable(newproxy(true)).__gc = finalizer
  else
    setmetatable({}, { __gc = finalizer })
  end
  collectgarbage()
end
local function allocate() for i = 1, 30000 do live[i % 100 + 1] = { i } end end
local function idle() arithmetic(50000) end

local function timed(turn)
  local start = clock()
  turn()
  return clock() - start
end

io.stdout:write("READY\n")
io.stdout:flush()
local collecting, other, started = 0, 0, clock()
repeat
  timed(steps)
  collecting = collecting + timed(collect)
  local before, took = finalizing, timed(finalize)
  collecting = collecting + took - (finalizing - before)
  timed(allocate)
  other = other + finalizing - before + timed(idle)
until seconds > 0 and clock() - started >= seconds
print(("collecting %.3f other %.3f"):format(collecting, other))
