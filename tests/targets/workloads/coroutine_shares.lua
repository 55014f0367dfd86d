-- coroutine_shares.lua SECONDS: the main thread and two coroutines work, the coroutines three times and twice as long as
-- the main thread; one of them works inside of a call from C. Prints how much CPU time each has taken.
local seconds = tonumber(arg[1])
local taken = {main = 0, reader = 0, writer = 0}

local function work(who, least)
  local begin = os.clock()
  local x = 0
  repeat
    for i = 1, 2000 do x = x + i % 7 end
  until os.clock() - begin >= least
  taken[who] = taken[who] + os.clock() - begin
  return x
end

local function read_orders()
  while true do
    work("reader", 0.006)
    coroutine.yield()
  end
end

-- string.gsub calls the function from C, in the same coroutine.
local function write_orders()
  while true do
    string.gsub("x", "x", function() work("writer", 0.004) end)
    coroutine.yield()
  end
end

local reader, writer = coroutine.create(read_orders), coroutine.wrap(write_orders)
io.write("READY\n") io.flush()
local last = os.clock() + seconds
while os.clock() < last do
  assert(coroutine.resume(reader))
  writer()
  work("main", 0.002)
end
print(string.format("reader %.3f writer %.3f main %.3f", taken.reader, taken.writer, taken.main))
