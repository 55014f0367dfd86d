-- Keeps what two functions make, for ten seconds and more, and computes between.
local most, kept = 100000, { tables = {}, functions = {} }
for i = 1, most do kept.tables[i], kept.functions[i] = false, false end

local function make_table(i) return { number = i } end
local function make_function(i) return function() return i end end
local function keep(i)
  kept.tables[i % most + 1] = make_table(i)
  kept.functions[i % most + 1] = make_function(i)
end
local function compute(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end

io.write("READY\n")
io.flush()
local i = 0
while true do
  i = i + 1
  keep(i)
  compute(10000)
end
