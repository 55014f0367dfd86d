-- Makes LuaJIT's compiler give up in many ways, slowly enough that each attempt can be seen from outside, and then
-- waits. A line on standard input begins the work.
local kept = {}

-- A pause in C. What LuaJIT makes of its calls is compared, too.
local long = string.rep("x", 60)
local function pause() return string.find(long, ".-.-y") end

local function closures(n)
  local t = {}
  for i = 1, n do
    t[i % 10] = function() return i end
    pause()
  end
  return t
end

local function leaves_block(n)
  local f
  for i = 1, n do
    do
      local captured = i
      f = function() captured = captured + 1 return captured end
    end
    pause()
  end
  return f()
end

local function sum_of_pairs(t)
  local sum = 0
  for _, value in pairs(t) do sum = sum + value end
  return sum
end

local function count(...)
  local all = {...}
  return #all
end

local function inner_loops(n)
  local sum = 0
  for i = 1, n do
    for j = 1, 3 do sum = sum + j end
    pause()
  end
  return sum
end

local function plain(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return sum
end

local function switched_off(n) return n + 1 end
jit.off(switched_off)

local function calls_switched_off(n)
  local sum = 0
  local i = 0
  while i < n do
    i = switched_off(i)
    sum = sum + i
    pause()
  end
  return sum
end

local function fails(n)
  local failed = 0
  for i = 1, n do
    if not pcall(error, "x") then failed = failed + 1 end
    pause()
  end
  return failed
end

local function recursive(n) if n == 0 then return 0 end return 1 + recursive(n - 1) end

local function branches(n)
  local a, b = 0, 0
  for i = 1, n do
    if i % 3 == 0 then a = a + 1 elseif i % 5 == 0 then b = b + 1 else a = a - 1 end
  end
  return a + b
end

-- So hot that it is tried until it is blacklisted.
local function blacklisted(n)
  local f
  for i = 1, n do f = function() return i end end
  return f
end

io.write("READY\n") io.flush()
io.read()
local numbers = {1, 2, 3, x = 4, y = 5}
kept[1] = closures(300)
kept[2] = leaves_block(300)
for i = 1, 300 do sum_of_pairs(numbers) pause() end
for i = 1, 300 do count(i, i, i) pause() end
inner_loops(300)
plain(100000)
calls_switched_off(300)
fails(300)
for i = 1, 100 do recursive(30) pause() end
branches(20000)
kept[3] = blacklisted(200000)
io.write("DONE\n") io.flush()
io.read()
