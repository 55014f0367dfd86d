-- mix.lua [pairs FILE]: everything at once, forever. With "pairs FILE" it first runs some rounds under a hook and
-- writes each "caller -> callee" that can be adjacent on a stack, a line each; a function is source:line of its
-- definition, C is =[C], and * is any caller (a finalizer may run wherever memory is allocated).
local unpack = table.unpack or unpack
local compile = loadstring or load
local recording, seen = arg[1] == "pairs", {}
local compiles = recording and jit and jit.status() -- machine code does not call hooks
if compiles then jit.off() end

local function place(info)
  if not info or info.what == "C" then return "=[C]" end
  if info.what == "tail" then return "=(tail call)" end
  return info.source .. ":" .. info.linedefined
end

local function pair(caller, callee) seen[caller .. " -> " .. callee] = true end

-- Tail calls change the caller of a function, so both its return and its call are recorded.
local function on_event()
  local callee = debug.getinfo(2, "S")
  if callee then pair(place(debug.getinfo(3, "S")), place(callee)) end
end

-- Without `thread`: the running one, for which Lua 5.1 has no value if it is the main one.
local function watch(thread)
  if not recording then return end
  if thread then debug.sethook(thread, on_event, "cr") else debug.sethook(on_event, "cr") end
end

local function spawn(body)
  local thread = coroutine.create(body)
  watch(thread)
  return thread
end

-- ---- the work, a function for each way to run Lua

local function arithmetic(n)
  local x = 1
  for i = 1, n do x = (x * 31 + i) % 65537 end
  return x
end

local function count(...) return select("#", ...) end
local function shuffle(...) local n = count(...) return n, ... end
local function varargs(n) local total, last = shuffle(unpack({}, 1, n)) return total + count(last, total) end

local function strings(n)
  local parts = {}
  for i = 1, n do parts[i] = ("%d:%s"):format(i, tostring(i * 0.5)) end
  local text = table.concat(parts, ";")
  return #text:upper() + #text:rep(3) + #text:reverse():sub(5, -5)
end

local function replace(word) return #word > 2 and arithmetic(#word) or word end
local function substitute(n) return (("alpha be gamma "):rep(n):gsub("%a+", replace)) end

local function ascending(a, b) return a < b end
local function sorting(n)
  local values, x = {}, n
  for i = 1, n do x = (x * 1103515245 + 12345) % 2147483648; values[i] = x end
  table.sort(values, ascending)
  return values[1]
end

local vector = {}
vector.__index = function(_, key) return arithmetic(#key) end
vector.__newindex = function(self, key, value) rawset(self, key, value + arithmetic(2)) end
vector.__add = function(a, b) return setmetatable({ x = a.x + b.x }, vector) end
vector.__lt = function(a, b) return a.x < b.x end
vector.__eq = function(a, b) return a.x == b.x end
vector.__concat = function(a, b) return tostring(a) .. tostring(b) end
vector.__tostring = function(self) return "<" .. self.x .. ">" end
vector.__call = function(self, n) return self.x + arithmetic(n) end
vector.__unm = function(self) return setmetatable({ x = -self.x }, vector) end

local function metamethods(n)
  local a, b = setmetatable({ x = n }, vector), setmetatable({ x = 2 }, vector)
  a.y = 3
  local c = a + b + -b
  return c < a, c == b, a .. b, c(5), c.missing
end

local function thrower(n) if n > 3 then error({ n }) end return arithmetic(n) end
local function handler(message) return arithmetic(3) and message end
local function failing(n)
  local bad = 0
  for i = 1, n do if not pcall(thrower, i % 6) then bad = bad + 1 end end
  xpcall(function() return thrower(9) end, handler)
  return bad
end

local function recurse(n) if n == 0 then return arithmetic(20) end return recurse(n - 1) + 1 end
local function recursion(n) return pcall(recurse, 150 + n * 250) end

local odd
local function even(n) if n == 0 then return true end return odd(n - 1) end
function odd(n) if n == 0 then return false end return even(n - 1) end
local function tail_calls(n) local result = even(n) return result end

local function nested(depth, body)
  if depth == 0 then return body(depth) end
  local thread = spawn(function() coroutine.yield(depth) return nested(depth - 1, body) end)
  coroutine.resume(thread)
  local _, result = coroutine.resume(thread)
  return result
end
local function coroutines(n) return nested(n % 5 + 1, arithmetic) end

local function in_coroutine(word)
  local thread = spawn(substitute)
  local _, text = coroutine.resume(thread, #word)
  return text
end
local function crossed() return (("ab cdefg"):gsub("%a+", in_coroutine)) end

local function produce(n) for i = 1, n do coroutine.yield(i) end end
local function generator(n)
  local body = function() watch() produce(n) if recording and not jit then debug.sethook() end end -- LuaJIT has one hook for all
  if recording then pair("=[C]", place(debug.getinfo(body, "S"))) end
  return coroutine.wrap(body)
end
local function iterators(n)
  local sum = 0
  for i in generator(n) do sum = sum + i end
  for word in ("some more words"):gmatch("%a+") do sum = sum + #word end
  for key, value in pairs({ 1, 2, key = 3 }) do sum = sum + value + #tostring(key) end
  return sum
end

local finalized = 0
local function tidy() finalized = finalized + 1 end
local function finalizer() tidy() end
local function garbage(n)
  local weak = setmetatable({}, { __mode = "k" })
  for i = 1, n do
    weak[{}] = { i }
    if newproxy then
      getmetatable(newproxy(true)).__gc = finalizer
    else
      setmetatable({}, { __gc = finalizer })
    end
  end
  if n % 3 == 0 then collectgarbage("step", n) end
  return weak
end

local source = "local n, work = ... local function inner(k) local r = work(k) return r end local r = inner(n) return r"
local function loading(n) local chunk = compile(source, "=loaded") local result = chunk(n, arithmetic) return result end

local closing = compile([[
  local spawn, work = ...
  local function on_close() work(10) end
  local function guarded() local guard <close> = setmetatable({}, { __close = on_close }) coroutine.yield() end
  return function()
    local thread = spawn(guarded)
    coroutine.resume(thread)
    coroutine.close(thread)
  end
]], "=closing")
closing = closing and closing(spawn, arithmetic)

local function round(n)
  arithmetic(500)
  varargs(n % 100)
  strings(20)
  substitute(5)
  sorting(60)
  metamethods(n)
  failing(8)
  recursion(n % 13)
  tail_calls(n % 50)
  coroutines(n)
  crossed()
  iterators(5)
  garbage(n % 20)
  loading(n % 30)
  if closing then closing() end
end

if recording then
  pair("*", place(debug.getinfo(finalizer, "S")))
  pair(place(debug.getinfo(finalizer, "S")), place(debug.getinfo(tidy, "S")))
  pair(place(debug.getinfo(1, "S")), place(debug.getinfo(round, "S")))
  pair("=[C]", place(debug.getinfo(1, "S")))
  watch()
  for n = 1, 60 do round(n) end
  debug.sethook()
  recording = false
  if compiles then jit.on() jit.flush() end
  local file = assert(io.open(arg[2], "w"))
  for line in pairs(seen) do file:write(line, "\n") end
  file:close()
end
io.stdout:write("READY\n")
io.stdout:flush()
local n = 0
while true do
  n = n % 1000 + 1
  round(n)
end
