-- coroutines.lua: 500 coroutines are suspended, each in a function with its own name and in work; one coroutine works.
local function work(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function asleep(n)
  work(n)
  coroutine.yield()
  work(n)
end
local sleepers = {}
for i = 1, 500 do
  sleepers[i] = coroutine.create(asleep)
  coroutine.resume(sleepers[i], i)
end

local function awake()
  while true do
    work(10000)
    coroutine.yield()
  end
end
local worker = coroutine.create(awake)

io.stdout:write("READY\n")
io.stdout:flush()
while true do coroutine.resume(worker) end
