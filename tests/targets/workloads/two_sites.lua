-- Two functions allocate, one four times as many bytes as the other. The collector has a heap to mark, so it takes a good
-- part of the time.
local kept = {}
for i = 1, 20000 do kept[i] = { i } end

local function most(n) for i = 1, n do local t = { i, i, i, i } end end
local function least(n) for i = 1, n do local t = { i, i, i, i } end end
local function compute(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end

io.write("READY\n")
io.flush()
while true do
  most(40000)
  compute(200000)
  least(10000)
end
