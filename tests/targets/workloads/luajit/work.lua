-- The work of the hosts: outer calls middle calls leaf, for a few ms.
local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function middle(n)
  local x = 0
  for i = 1, n do x = x + leaf(10000) end
  return x
end

local function outer()
  local x = middle(100)
  return x
end

return outer
