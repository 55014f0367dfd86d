-- instants.lua [jit-off] [generational]: makes and drops objects of all kinds, for ever. Some 3 MB stay.
local options = {}
for _, word in ipairs { ... } do options[word] = true end
if options.generational then collectgarbage("generational") end
if options["jit-off"] then jit.off() end
local unpack = table.unpack or unpack

local keep = {}
for i = 1, 15000 do keep[i] = { id = i, name = "n" .. i } end

local function tree(depth) return depth == 0 and {} or { tree(depth - 1), tree(depth - 1) } end

-- Tables that grow, both parts, and shrink.
local function rehash(n)
  local list, map = {}, {}
  for i = 1, n do
    list[i] = i
    map["k" .. i] = i
  end
  for i = 1, n do map["k" .. i] = nil end
  for i = 1, 20 do map[i + 0.5] = list end
  return list
end

local function strings(n)
  local parts = {}
  for i = 1, n do parts[i] = ("x"):rep(i % 100) .. i end
  return table.concat(parts)
end

local function coroutines(n)
  local waiting = {}
  for i = 1, n do
    local co = coroutine.create(function(a)
      local mine = { a }
      local function deep(left) if left > 0 then return deep(left - 1) or mine end coroutine.yield(function() return mine end) return nil end
      deep(i % 30)
      return mine
    end)
    coroutine.resume(co, { i })
    waiting[i] = co
  end
  for i = 1, n, 2 do coroutine.resume(waiting[i]) end
  return waiting
end

-- In 5.1 and LuaJIT a value always counts: one that refers to its key would stay for ever.
local has_ephemerons = not newproxy
local ephemerons, values = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "v" })
local function weak(n)
  for i = 1, n do
    local key = { i }
    ephemerons[key] = { has_ephemerons and key, i }
    values[i] = key
    if i % 16 == 0 then keep[i] = key end
  end
end

local function closures(n)
  local all = {}
  for i = 1, n do
    local a, b = i, {}
    all[i] = function() a = a + 1 return a, b end
    all[-i] = function() return b, all end
  end
  return all
end

local finalized = 0
local function finalizers(n)
  for i = 1, n do
    if newproxy then getmetatable(newproxy(true)).__gc = function() finalized = finalized + 1 end
    else setmetatable({ i }, { __gc = function() finalized = finalized + 1 end }) end
  end
end

local load = loadstring or load
local function chunks(n)
  for i = 1, n do load("local a, b = ... return function(x) return a + x + " .. i .. ", { b, x = 'text" .. i .. "' } end")() end
end

local function numbers(n)
  local sum, t = 0, { x = 1, 2, 3 }
  for i = 1, n do
    t[i % 50 + 1] = i
    t.x = t.x + t[i % 50 + 1] % 7
    local p = { i, sum }
    sum = sum + p[1]
  end
  return sum
end

local round = 0
local function work()
  round = round + 1
  local t = tree(9)
  rehash(round % 5 == 0 and 30000 or 700)
  strings(600)
  coroutines(40)
  weak(400)
  closures(150)
  finalizers(30)
  chunks(10)
  numbers(4000)
  for i = 1, 200 do local at = (round * 131 + i * 7) % #keep + 1 keep[at] = { id = at, name = "m" .. round .. i } end
  return t
end
for i = 1, 3 do work() end
io.stdout:write("READY\n")
io.stdout:flush()
while true do work() end
