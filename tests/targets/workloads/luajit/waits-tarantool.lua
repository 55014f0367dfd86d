-- For Tarantool: 30 fibers wait for a message, 5 for a timer, and three work in turns if asked to ("busy").
local fiber = require("fiber")
local channel = fiber.channel(0)

local function wait_message() local message = channel:get() return message end
local function wait_timer() local done = fiber.sleep(1000) return done end
local function wait_turn() local done = fiber.sleep(0) return done end

local function work()
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= 0.002
  return x
end

local function start(name, run)
  fiber.create(function()
    fiber.name(name)
    run()
  end)
end

for i = 1, 30 do start("reader" .. i, function() wait_message() end) end
for i = 1, 5 do start("sleeper" .. i, function() wait_timer() end) end
if arg[1] == "busy" then
  for i = 1, 3 do start("worker" .. i, function() while true do work() wait_turn() end end) end
end
print("READY")
io.stdout:flush()
fiber.sleep(1000)
