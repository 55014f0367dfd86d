-- For core files: waits for a line, in a coroutine within a C function, while other coroutines are suspended.
-- With an argument it works instead, in functions that LuaJIT compiles into one trace.
local suspended = {}

local function inner(n, ...)
  local kept = { n = n, name = "kept" }
  print("READY")
  io.stdout:flush()
  local line = io.read("*l")
  return line, kept, ...
end

local function middle(a)
  local resumed = coroutine.wrap(function(x)
    local first = inner(x, "vararg", 2)
    return first
  end)
  return (resumed(a))
end

local function waits(k)
  local mine = "coroutine " .. k
  coroutine.yield(k)
  return mine
end

local function leaf(a) return (a * 3 + 1) % 1000003 end
local function branch(a) return leaf(a) + leaf(a + 1) end
local function loop()
  local a = 1
  while true do a = branch(a) end
end

for i = 1, 3 do
  suspended[i] = coroutine.create(waits)
  coroutine.resume(suspended[i], i)
end
if arg[1] then
  print("READY")
  io.stdout:flush()
  loop()
end
table.sort({ 2, 1 }, function(p, q)
  middle(p)
  return p < q
end)
