-- Works in many ways and writes the results: the same bytes in each run of one Lua. For Lua 5.1 to 5.5 and LuaJIT.
local state = 42
local function random(n) state = (state * 16807) % 2147483647 return state % n + 1 end

local function sorted(n)
  local t = {}
  for i = 1, n do t[i] = random(1000) end
  table.sort(t)
  return table.concat(t, ",")
end

local function words(n)
  local counts, text = {}, {}
  for i = 1, n do text[i] = string.char(96 + random(26), 96 + random(26)) end
  for word in string.gmatch(table.concat(text, " "), "%a+") do counts[word] = (counts[word] or 0) + 1 end
  local all = {}
  for word, count in pairs(counts) do all[#all + 1] = word .. "=" .. count end
  table.sort(all)
  return table.concat(all, " ")
end

local function tree(depth) return depth == 0 and {} or {tree(depth - 1), tree(depth - 1)} end
local function size(node) return node[1] and 1 + size(node[1]) + size(node[2]) or 1 end

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Point) end
Point.__tostring = function(p) return "(" .. string.format("%d", p.x) .. "," .. string.format("%d", p.y) .. ")" end

local function points(n)
  local sum = setmetatable({x = 0, y = 0}, Point)
  for i = 1, n do sum = sum + setmetatable({x = i, y = random(9)}, Point) end
  return tostring(sum)
end

local function generator(n)
  return coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i) end
    coroutine.yield(nil)
  end)
end

local function errors(n)
  local caught = 0
  for i = 1, n do
    local ok, message = pcall(function() if i % 3 == 0 then error({code = i}) end local x = nil return i % 3 == 1 and x.field or i end)
    if not ok then caught = caught + (type(message) == "table" and message.code or 1) end
  end
  return caught
end

local function finalised(n)
  local count = 0
  for _ = 1, n do
    local object = newproxy and newproxy(true) or setmetatable({}, {__gc = function() count = count + 1 end})
    if newproxy then getmetatable(object).__gc = function() count = count + 1 end end
    object = nil
  end
  collectgarbage() collectgarbage()
  return count
end

local function replaced(n)
  local sum = 0
  for i = 1, n do sum = sum + #string.gsub("key" .. i .. " = value", "(%w+) = (%w+)", function(key, value) return value .. key end) end
  return sum
end

for round = 1, 40 do
  io.write(round, " ", sorted(500), "\n", words(400), "\n", size(tree(9)), " ", points(300), "\n")
  local sum = 0
  for i in generator(400) do sum = sum + i end
  io.write(sum, " ", errors(300), " ", finalised(100), " ", replaced(300), "\n")
  local real = 0
  for i = 1, 20000 do real = real + math.sin(i) * (i % 7) end
  io.write(string.format("%.14g\n", real))
  io.flush()
end
io.write("done\n")
