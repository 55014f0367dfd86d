-- tarantool host-tarantool.lua: two fibers take turns, forever.
local fiber = require("fiber")
local outer = dofile(arg[0]:match("^.*/") .. "work.lua")

local function first_fiber() while true do outer() fiber.yield() end end
local function second_fiber() while true do outer() fiber.yield() end end

outer()
io.stdout:write("READY\n")
io.stdout:flush()
fiber.create(first_fiber)
second_fiber()
