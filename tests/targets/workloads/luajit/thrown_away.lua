-- Functions that are loaded, called in machine code, and thrown away: 3,000 chunks, each with a name of its own. Their
-- iterators are on no Lua stack: traces have inlined them.
local load = loadstring or load
local text = [[
local function next_%04d(n, i) i = i + 1 if i <= n then return i end end
local function counter_%04d(n) local i = 0 return function() i = i + 1 if i <= n then return i end end end
local function work%04d(size)
  local sum = 0
  for i in next_%04d, size, 0 do sum = sum + i % 7 end
  for i in counter_%04d(size) do sum = sum + i % 7 end
  return sum
end
return work%04d(...)]]
print("READY")
io.stdout:flush()
local total, number = 0, 0
while true do
  number = number % 3000 + 1
  local chunk = load(text:gsub("%%04d", ("%04d"):format(number)), ("=tpl%04d"):format(number))
  total = total + chunk(20000)
end
