-- helpers.lua: work that the interpreter does in its own subroutines, whose frames have no description.
local function modulo(n)
  local x = 0.5
  for i = 1, n do x = x + (i + 0.25) % 7.5 end
  return x
end

local floor, ceil = math.floor, math.ceil
local function rounded(n)
  local x = 0.5
  for i = 1, n do x = floor(x * 0.5 + i * 0.3) + ceil(x * 0.25) end
  return x
end

local function power(n)
  local x = 1.5
  for i = 1, n do x = (x ^ 0.5) + (i % 3) ^ 2 end
  return x
end

io.stdout:write("READY\n")
io.stdout:flush()
while true do
  modulo(1000)
  rounded(1000)
  power(1000)
end
