-- traceback.lua KIND: enters a state of states.lua, prints the stack as Lua itself sees it, and waits right there.
-- The stack is the printed one with io.read on top: both are called on one line.
local enter, report = dofile((arg[0]:match("^.*/") or "./") .. "states.lua")
local function rest() report(debug.traceback()) io.read() end
enter(arg[1], rest)
