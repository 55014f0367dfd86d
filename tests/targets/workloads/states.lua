-- Every way this test suite knows to be deep inside Lua: states[KIND](rest) builds a stack and calls rest at its
-- innermost end. Runs on Lua 5.1 to 5.5 and LuaJIT; a kind that a version cannot build returns nothing and never calls rest.

local states = {}
local unpack = table.unpack or unpack
local compile = loadstring or load
local puc51 = _VERSION == "Lua 5.1" and not jit

-- The tracebacks of the threads that wait for a coroutine they resumed, innermost first. Lua 5.1 cannot get that of
-- the main thread, so each resumer stores its own: resuming(), written just before the call that resumes and on the
-- same line, looks at the stack from a hook inside that call.
local waiting = {}

local function resuming()
  debug.sethook(function()
    debug.sethook()
    table.insert(waiting, 1, debug.traceback("", 2))
  end, "c")
end

-- report(TRACEBACK) prints the running coroutine's stack and those of its resumers, then says READY.
local function report(innermost)
  local blocks = { innermost, unpack(waiting) }
  for i = 1, #blocks do blocks[i] = blocks[i]:gsub("^\n", "") end
  io.stdout:write(table.concat(blocks, "\n-- coroutine\n"), "\nEND\nREADY\n")
  io.stdout:flush()
end

function states.plain(rest)
  local object = { field = {} }
  local function by_upvalue() rest() return 1 end
  local function by_local() return by_upvalue() + 1 end
  function object.field.call() local inner = by_local; return inner() + 1 end
  function object:method() return self.field.call() + 1 end
  function by_global() return object:method() + 1 end
  return by_global() + 1
end

function states.gsub(rest)
  local function callback(letter) rest() return letter end
  local text = ("one two"):gsub("%w+", callback)
  return text
end

function states.sort(rest)
  local function less(a, b) rest() return a < b end
  table.sort({ 3, 1, 2 }, less)
end

function states.meta(rest)
  local value = setmetatable({}, {
    __index = function(_, key) rest() return key end,
    __concat = function(a, b) local found = a.missing return found end,
    __add = function(a, b) local joined = a .. b return joined end,
    __lt = function(a, b) local sum = a + b return sum end,
  })
  return value < value
end

function states.pcall(rest)
  local function outer()
    local ok = pcall(function() pcall(rest, 1, 2) error("never reached") end)
    return ok
  end
  return pcall(outer)
end

function states.xpcall(rest)
  local function handler(message) rest() return message end
  local function breaks() local nothing = nil; return nothing.field + 1 end
  return xpcall(function() xpcall(breaks, handler) end, print)
end

function states.coroutine(rest)
  local function third() rest() end
  local function second()
    local inner = coroutine.create(third)
    resuming() coroutine.resume(inner)
  end
  local function first()
    local inner = coroutine.wrap(function(...) second(...) end)
    resuming() inner(1, 2, 3)
  end
  local outer = coroutine.create(first)
  resuming() coroutine.resume(outer)
end

-- Resumes a coroutine that yielded inside body, so that a C function that was active then is finished by its continuation.
local function after_yield(body)
  local paused = coroutine.create(body)
  coroutine.resume(paused)
  resuming() coroutine.resume(paused)
end

function states.yield(rest)
  after_yield(function() coroutine.yield() rest() end)
end

if not puc51 then
  function states.pcallyield(rest)
    after_yield(function()
      local function yields() coroutine.yield() rest() end
      pcall(pcall, yields)
    end)
  end

  function states.metayield(rest)
    local value = setmetatable({}, { __index = function(_, key) coroutine.yield() rest() return key end })
    after_yield(function() local found = value.missing return found end)
  end
end

function states.tailcall(rest)
  local function last() rest() return 1 end
  local function third() return last() end
  local function second() return pcall(third) end
  local function first() return second() end
  local result = first()
  return result
end

function states.hook(rest)
  local function on_line() debug.sethook() rest() end
  local function watched()
    debug.sethook(on_line, "l")
    local after = 1
    return after
  end
  return watched() + 1
end

-- A value whose finalizer is the given function, already garbage.
local function litter(finalizer)
  if newproxy then
    getmetatable(newproxy(true)).__gc = finalizer
  else
    setmetatable({}, { __gc = finalizer })
  end
end

function states.gc(rest)
  local done, latest = false, nil
  local function finalizer() rest() done = true end
  local function allocate() while not done do latest = { latest and {} } end end
  litter(finalizer)
  allocate()
end

function states.collect(rest)
  local function finalizer() rest() end
  litter(finalizer)
  litter(finalizer)
  collectgarbage()
  collectgarbage()
end

function states.require(rest)
  local folder = arg[0]:match("^.*/") or "./"
  package.path = folder .. "?.lua;" .. package.path
  inside_module = rest
  return require("module")
end

function states.load(rest)
  local chunk = compile("local rest = ...\nlocal function inner()\n  rest()\n  return 1\nend\nreturn inner() + 1")
  local named = compile("local chunk, rest = ... local result = chunk(rest) return result", "=generated by load")
  return named(chunk, rest) + 1
end

function states.stripped(rest)
  local function original(inner) inner() return 1 end
  local chunk = compile(string.dump(original, true))
  local result = chunk(rest)
  return result
end

-- As deep as this Lua allows, up to 150000 frames: the limit is that of the C stack, of the Lua stack or of call depth.
function states.deep(rest)
  local reached = 0
  local function probe(n)
    if n < 0 then rest() return 0 end
    reached = n
    return probe(n + 1) + 1
  end
  pcall(probe, 1)
  local depth = math.min(150000, math.floor(reached * 0.9))
  io.stdout:write("depth ", depth, "\n")
  local function down(n)
    if n == 0 then rest() return 0 end
    return down(n - 1) + 1
  end
  return down(depth)
end

function states.vararg(rest)
  local function inner(...) rest(...) return select("#", ...) end
  local function outer(first, ...) local count = inner(first, ..., first) return count end
  local function all(...) return outer(...) + outer((...)) end
  return all(unpack({}, 1, 200))
end

-- A function that starts after line 900 and continues for hundreds of lines, with gaps too wide for a line's delta.
function states.longchunk(rest)
  local lines = { "local rest = ...", "local data = {" }
  for i = 1, 950 do lines[#lines + 1] = "  { " .. i .. ", 'text', key = " .. i * 0.5 .. " }," end
  lines[#lines + 1] = "}"
  lines[#lines + 1] = "local function far_down(a)"
  for i = 1, 300 do lines[#lines + 1] = "  a = a + data[" .. i .. "][1]" end
  lines[#lines + 1] = ("\n"):rep(400) .. "  rest()"
  for _ = 1, 200 do lines[#lines + 1] = "  a = a * 2" end
  lines[#lines + 1] = "  return a\nend\nlocal result = far_down(0)\nreturn result"
  local chunk = compile(table.concat(lines, "\n"), "@longchunk.lua")
  local result = chunk(rest)
  return result
end

-- The Lua stack has moved several times, larger and smaller, between the frames that are on it.
function states.stackgrowth(rest)
  local function wide(...) return select("#", ...) end
  local function grow(n)
    local count = wide(unpack({}, 1, n * 400))
    if n == 10 then collectgarbage() rest() return count end
    return grow(n + 1) + count
  end
  return grow(1)
end

function states.for_iterator(rest)
  local function iterate(limit, i) if i < limit then rest() return i + 1 end end
  local sum = 0
  for i in iterate, 3, 0 do sum = sum + i end
  return sum
end

local close = compile([[
  local rest = ...
  local function on_close() rest() end
  local function scope()
    local guard <close> = setmetatable({}, { __close = on_close })
    return 1
  end
  local result = scope()
  return result
]])
if close then
  function states.close(rest) local result = close(rest) return result end
end

-- enter(KIND, rest): enters that state; prints UNSUPPORTED if this Lua does not have it.
local function enter(kind, rest)
  if not states[kind] then
    io.stdout:write("UNSUPPORTED\n")
    os.exit(0)
  end
  local result = states[kind](rest)
  return result
end

return enter, report
