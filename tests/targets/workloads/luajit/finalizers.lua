-- finalizers.lua: garbage objects of Lua and of C, whose finalizers work.
local ffi = require("ffi")
local count = 0
local function tidy(n) for i = 1, n do count = (count + i) % 1009 end end
local function finalizer() tidy(20) end

local function of_lua() getmetatable(newproxy(true)).__gc = finalizer end
local function of_c() return ffi.gc(ffi.new("int[4]"), finalizer) end
local function litter(n)
  local kept = {}
  for i = 1, n do
    of_lua()
    of_c()
    kept[i % 10 + 1] = { i, tostring(i) }
  end
  return kept
end

io.stdout:write("READY\n")
io.stdout:flush()
while true do litter(100) end
