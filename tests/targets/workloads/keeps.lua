-- keeps.lua: what some functions allocate stays, what others allocate is dropped at once. It runs until 200 MB or so are
-- kept. Each function has a line of its own.
local kept, count = {}, 0
local function compute(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end
local function keep_tables(i) for k = 1, 4 do count = count + 1 kept[count] = { id = i, at = k } end end
local function keep_functions(i) count = count + 1 kept[count] = function() return i end end
local function keep_strings(i) count = count + 1 kept[count] = ("kept string number %d"):format(i) end
local function drop_tables() for j = 1, 20 do local t = { j } end end
local function drop_strings(i) for j = 1, 4 do local s = ("dropped string %d %d"):format(i, j) end end
local function drop_functions(i) for j = 1, 4 do local f = function() return i + j end end end

print("READY")
io.stdout:flush()
local i = 0
while count < 2e6 do
  i = i + 1
  keep_tables(i)
  drop_tables()
  keep_functions(i)
  drop_strings(i)
  keep_strings(i)
  drop_functions(i)
  compute(3000)
end
