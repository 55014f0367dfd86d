-- Three functions with different shares of the time, and two threads of execution (a coroutine in the main chunk).
local function add(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
local function text(n) local parts = {} for i = 1, n do parts[i] = tostring(i) .. 'x' end return table.concat(parts) end
local loop = coroutine.wrap(function() while true do add(30000) coroutine.yield() end end)
local start = os.clock()
while os.clock() - start < 4 do loop() text(1500) add(5000) end
