-- flush.lua: traces are compiled and flushed all the time.
local function leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end
local function middle(n)
  local x = 0
  for i = 1, n do x = x + leaf(i % 50) end
  return x
end
local function outer(n)
  local x = middle(n)
  return x
end

io.stdout:write("READY\n")
io.stdout:flush()
while true do
  for i = 1, 20 do outer(200) end
  jit.flush()
end
