-- A heap with some of everything, and as little as possible of it: the copied heaps of corpus/objects
-- are of this program (shrink_heap.cpp).
local yield, create, resume, meta, collect = coroutine.yield, coroutine.create, coroutine.resume, setmetatable, collectgarbage
local read, show, flush, ffi_loaded, ffi = io.read, print, io.stdout, pcall(require, "ffi")
local proxy, jit_on = newproxy, jit and jit.status()
if jit_on then
  require("jit.opt").start("hotloop=3")
  local sum, list = 0, { 1, 2, x = { y = 1 } }
  for i = 1, 60 do sum = sum + list[i % 2 + 1] + list.x.y end
  kept_list = list
end
Account = {} Account.__index = Account
accounts = { meta({ balance = 1 }, Account), meta({ balance = 2 }, Account), meta({}, { __name = "my.Type" }) }
records = {}
for i = 1, 4 do records[i] = { id = i, body = ("body of a record "):rep(5), when = i } end
by_key = meta({}, { __mode = "k" })
by_value = meta({}, { __mode = "v" })
by_key[records[1]] = { of = records[2] }
by_value[1], by_value.x = records[3], { gone = true }
local held = { count = 1 }
function counter() held.count = held.count + 1 return held, records end
function other() return held end
sleeper = create(function(...) local mine = { ... } local function inner() return mine end yield(inner) return mine end)
resume(sleeper, {}, "x")
fresh, ended = create(counter), create(function() end)
resume(ended)
finalized = meta({}, { __gc = function() end })
if proxy then finalized = proxy(true) getmetatable(finalized).__gc = function() end end
if ffi_loaded then point = ffi.gc(ffi.new("int[4]"), function() end) text = ffi.new("char[?]", 30) end
cycle = {} cycle.next = { next = cycle }
file = io.tmpfile()
for name in pairs(package.loaded) do package.loaded[name] = nil end
for _, name in ipairs { "string", "table", "math", "os", "io", "debug", "coroutine", "utf8", "bit32", "bit", "jit", "package", "arg",
  "require", "module", "load", "loadfile", "dofile", "loadstring", "rawequal", "rawlen", "rawget", "rawset", "select", "tostring",
  "tonumber", "xpcall", "error", "assert", "next", "unpack", "getfenv", "setfenv", "gcinfo", "newproxy", "warn", "ipairs", "collectgarbage",
  "getmetatable", "setmetatable", "type" } do _G[name] = nil end
package = nil
if debug then debug = nil end
collect() collect()
for i = 1, 3 do held[i] = { dead = i } end
for i = 1, 3 do held[i] = nil end
flush:write("READY\n") flush:flush()
read()
