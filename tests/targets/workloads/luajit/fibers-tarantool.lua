-- For Tarantool: fibers with names, each with a function of its own, so that a stack tells which fiber it has to be.
local fiber = require("fiber")

local function spin(least)
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= least
  return x
end

local function in_one() local x = spin(0.001) return x end
local function in_three() local x = spin(0.003) return x end
local function in_long() local x = spin(0.001) return x end
local function in_short() local x = spin(0.001) return x end
local function in_renamed() local x = spin(0.001) return x end

local function start(name, work)
  fiber.create(function()
    fiber.name(name)
    while true do work() fiber.sleep(0) end
  end)
end

start("one", in_one)
start("three", in_three)
start(("long"):rep(20), in_long) -- not in the struct, but in a block of its own
start("before", function() fiber.name("renamed") in_renamed() fiber.name("before") end)
start("starter", function() -- its fibers use the stacks of others that have ended
  local done = fiber.create(function() fiber.name("short") in_short() end)
  while done:status() ~= "dead" do fiber.sleep(0) end
end)
print("READY")
io.stdout:flush()
fiber.sleep(1000)
