-- inlined.lua: outer calls middle calls leaf, all in one trace of loop.
local slots = {}
for i = 1, 64 do slots[i] = i end

local function leaf(i)
  local x = slots[i % 64 + 1]
  slots[(i * 7) % 64 + 1] = x * 0.5 + slots[(i * 3) % 64 + 1] % 17
  slots[(i * 11) % 64 + 1] = x + 1
end

local function middle(i)
  leaf(i)
  leaf(i + 1)
  leaf(i + 2)
end

local function outer(i)
  middle(i)
  middle(i + 5)
end

local function loop(n) for i = 1, n do outer(i) end end

loop(1000)
io.stdout:write("READY\n")
io.stdout:flush()
while true do loop(100000) end
