-- callbacks.lua: table.sort and string.gsub call Lua, which calls further functions.
local function key(x) return x * 7919 % 1009 end
local function less(a, b)
  local x, y = key(a), key(b)
  return x < y
end
local function sorted(n)
  local values = {}
  for i = 1, n do values[i] = i end
  table.sort(values, less)
  return values
end

local function shorten(word) return word:sub(1, 2) end
local function replace(word)
  local short = shorten(word)
  return short
end
local text = ("alpha beta gamma delta "):rep(20)
local function replaced()
  local result = text:gsub("%a+", replace)
  return result
end

io.stdout:write("READY\n")
io.stdout:flush()
while true do
  sorted(300)
  for _ = 1, 10 do replaced() end
end
