-- spin.lua KIND: like traceback.lua, but works forever instead of waiting: on top of the printed stack there is only leaf.
local enter, report = dofile((arg[0]:match("^.*/") or "./") .. "states.lua")
function leaf(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return sum
end
local function rest() report(debug.traceback()) while true do leaf(1000) end end
enter(arg[1], rest)
