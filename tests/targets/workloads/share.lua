-- share.lua [PERCENT [SECONDS [WORK]]]: two functions share the CPU, heavy with PERCENT of it (75) and light with the
-- rest, by the program's own clock: after each slice, the one that lags behind runs. After SECONDS of CPU time (5;
-- 0: never) it prints how much each has used. WORK is arith, string, table, coroutine or c; with LuaJIT also ffi LIBRARY:
-- heavy calls the library's c_payload, and light the same in Lua.
local percent, seconds, kind = tonumber(arg[1] or 75), tonumber(arg[2] or 5), arg[3] or "arith"
local work = {}

function work.arith()
  local x = 0.5
  for i = 1, 20000 do x = x * 1.0000001 + i % 3 end
  return x
end

function work.string()
  local text = "the quick brown fox jumps over the lazy dog "
  for i = 1, 60 do
    text = text:sub(1, 40) .. i
    text:gsub("%w+", function(word) return word:upper() end)
    text:find("lazy", 1, true)
  end
  return text
end

function work.table()
  local kept = {}
  for i = 1, 1500 do kept[i % 100 + 1] = { i, name = "item" .. i % 10, next = kept[i % 50 + 1] and {} } end
  return kept
end

function work.c()
  local parts = {}
  for i = 1, 200 do parts[i] = ("x"):rep(i * 7919 % 100) end
  table.sort(parts, function(a, b) return #a < #b end)
  return table.concat(parts, ",")
end

local heavy_slice = work[kind] or work.arith
local light_slice = heavy_slice
if kind == "ffi" then
  local ffi = require("ffi")
  ffi.cdef("int c_payload(int n);")
  local library = ffi.load(arg[4])
  local function lua_payload(n) return n < 2 and n or lua_payload(n - 1) + lua_payload(n - 2) end
  function heavy_slice() for _ = 1, 10 do library.c_payload(18) end end
  function light_slice() for _ = 1, 10 do lua_payload(18) end end
end
function heavy() local result = heavy_slice() return result end
function light() local result = light_slice() return result end

local run_heavy, run_light = heavy, light
if kind == "coroutine" then
  local function forever(body)
    return coroutine.wrap(function() while true do body() coroutine.yield() end end)
  end
  run_heavy, run_light = forever(heavy), forever(light)
end

io.stdout:write("READY\n")
io.stdout:flush()
local heavy_time, light_time = 0, 0
local start = os.clock()
local now = start
while seconds == 0 or now - start < seconds do
  local before = now
  if heavy_time * (100 - percent) <= light_time * percent then
    run_heavy()
    now = os.clock()
    heavy_time = heavy_time + now - before
  else
    run_light()
    now = os.clock()
    light_time = light_time + now - before
  end
end
io.stdout:write(("heavy %.3f light %.3f\n"):format(heavy_time, light_time))
