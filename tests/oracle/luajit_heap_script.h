#pragma once
// A heap with everything that LuaJIT knows. Given:
//   heap(what)       compares the heap; "traces": wrong offsets must be noticed, too;
//                    "after a full collection": all that is left must be reachable, too
//   phase()          of the collector
//   light(n)         a light userdata; each n has other upper bits

inline constexpr const char* luajit_heap_script = R"LUA(
local heap, light, phase = heap, light, phase
local ffi = require "ffi"
local has_buffer, buffer = pcall(require, "string.buffer")
local yield, wrap, create, resume = coroutine.yield, coroutine.wrap, coroutine.create, coroutine.resume
keep = {}
local function add(...) for i = 1, select("#", ...) do keep[#keep + 1] = (select(i, ...)) end end
local function step() collectgarbage("step", 0) end

collectgarbage("stop")
heap("a new state")

-- Tables: slots allocated with the table, moved out of it, and emptied; hash parts; keys of all types.
add({}, { 1 }, { 1, 2, 3, "four", {} }, { n = 1 }, { 1, 2, n = 3, [{}] = {}, [print] = "f", [1.5] = 2, [true] = {} })
local grown = { 1, 2, 3 }
for i = 4, 1000 do grown[i] = i end
local holes = {}
for i = 1, 300, 7 do holes[i] = {} end
local shrunk = {}
for i = 1, 500 do shrunk[i], shrunk["k" .. i] = {}, i end
for i = 1, 500 do shrunk[i], shrunk["k" .. i] = nil, nil end
shrunk.again = 1
add(grown, holes, shrunk)

-- Weak tables, with and without something else that keeps their parts.
for _, mode in ipairs { "k", "v", "kv", "vk", "neither", "" } do
  local weak = setmetatable({}, { __mode = mode })
  for i = 1, 40 do
    local key, value = { i }, { value = i }
    weak[key], weak[i], weak["s" .. i], weak[function() return key end] = value, "text" .. i, {}, value
    if i % 3 == 0 then add(key) end
  end
  add(weak)
end
add(setmetatable({}, { __mode = 5 }))

-- Functions: upvalues open and closed, shared; C functions with upvalues; bytecode without names.
local function counter()
  local n, t = 0, {}
  return function() n = n + 1 t[n] = {} return n end, function() return t, n end
end
for i = 1, 30 do add(counter()) end
local open1, open2 = {}, "open"
local function uses_open() return open1, open2, grown end
add(uses_open, string.gmatch("a b", "%a"), io.lines("/dev/null"), ipairs {})
add(loadstring(string.dump(counter, true)), loadstring("local a, b = ... return function() return a, b, {1,2,x='y'} end", "=loaded"))
debug.setfenv(uses_open, setmetatable({ env = 1 }, { __index = _G }))

-- Coroutines: not begun, waiting in many places, ended, failed.
local function deep(n, ...) local here = { n } if n == 0 then yield(here, ...) return here end local r = deep(n - 1, here, ...) return r, here end
local waits = {
  function() yield({}) end,
  function(...) local a, b = {}, { ... } pcall(function() local c = {} yield(c) return a, b, c end) end,
  function() deep(60) end,
  function() local t = setmetatable({}, { __index = function(_, k) local v = { k } yield(v) return v end }) return t.field end,
  function() local t = setmetatable({}, { __lt = function() yield({}) return true end }) return t < t end,
  function() for k, v in function(s, c) yield({}) return nil end, {}, {} do end end,
  function() return xpcall(function() yield({}) end, function() return {} end) end,
  function() local co = wrap(function() yield({}) end) co() yield(co) end,
  function(...) local v = { ... } local function f() return v end yield(f, ...) return f end,
}
for i, f in ipairs(waits) do
  local co = create(f)
  resume(co, {}, "x" .. i, {})
  add(co, create(f))
end
local failed = create(function() local x = {} error({ x }) end)
resume(failed)
local ended = create(function() return 1 end)
resume(ended)
add(failed, ended, wrap(waits[1]))
local big = create(function() local function r(n) if n > 0 then return 1 + r(n - 1) end yield() return 0 end r(5000) end)
resume(big)
add(big)

-- Strings: short, long, many.
for i = 1, 2000 do add("s" .. i) end
add(("x"):rep(100), ("y"):rep(100000), "", "a", "ab", "abc", "abcd")
for i = 1, 200 do add(("same start and end"):rep(8) .. i .. ("same start and end"):rep(8)) end

-- Userdata: finalizers, files, environments.
local function proxy(gc) local p = newproxy(true) getmetatable(p).__gc = gc getmetatable(p).x = {} return p end
for i = 1, 20 do add(proxy(function() end), newproxy(), newproxy(true)) end
add(io.open("/dev/null"), io.tmpfile(), io.stdout)
for i = 1, 300 do add((light(i))) end

-- cdata: numbers, structures, arrays of any length, more alignment, references, functions, finalizers.
ffi.cdef [[
typedef struct heap_point { int x, y; double z; } heap_point;
typedef struct heap_list { struct heap_list *next; heap_point p; char name[]; } heap_list;
typedef struct __attribute__((aligned(64))) heap_line { char c; } heap_line;
typedef union heap_union { char c[11]; int64_t n; } heap_union;
enum heap_enum { HEAP_A, HEAP_B = 77 };
const char *getenv(const char *name);
]]
local cdata = {}
for i = 1, 25 do
  for _, value in ipairs {
    ffi.new("int64_t", i), 7ULL + i, 5LL * i, ffi.new("complex", i), ffi.new("int", i), ffi.new("char", 1), ffi.new("bool", true),
    ffi.new("heap_point", i, 2, 3), ffi.new("heap_point[3]"), ffi.new("int[?]", i), ffi.new("char[?]", i * 100),
    ffi.new("heap_list"), ffi.new("heap_line"), ffi.new("heap_line[2]"), ffi.new("heap_union"),
    ffi.new("enum heap_enum", "HEAP_B"), ffi.new("const heap_point"), ffi.new("heap_point *[4]"),
    ffi.new("float"), ffi.cast("void *", i), ffi.new("heap_point[2]")[1], ffi.typeof("heap_point"), ffi.C.getenv,
    ffi.gc(ffi.new("heap_point"), function() end), ffi.new("uint8_t __attribute__((aligned(32)))[7]"),
  } do cdata[#cdata + 1] = value end
end
ffi.metatype("heap_point", { __index = { sum = function(p) return p.x + p.y end } })
for i = 1, 20 do ffi.gc(ffi.new("char[?]", i), function() end) ffi.gc(ffi.new("int[2]"), type) end
for i = 1, 700 do add(ffi.typeof("struct { char a[" .. i .. "]; }")) end
add(cdata, ffi.C)
local callbacks = {}
for i = 1, 3 do
  local ok, cb = pcall(ffi.cast, "int (*)(int, int)", function(a, b) return a + b + i end)
  if ok then callbacks[i] = cb end
end
add(callbacks)
heap("before traces")

-- Buffers: their own bytes, those of a string, dictionaries.
if has_buffer then
  local own = buffer.new(1000):put(("z"):rep(5000))
  local shared = buffer.new():set(("text of a string"):rep(20))
  local coded = buffer.new({ dict = { "key", "value" }, metatable = { getmetatable(grown) or {} } }):encode({ key = "value" })
  add(own, shared, coded, buffer.new(), buffer.new():put("x"):reset())
end

-- Traces: loops, side traces, recursion, with constants of all types.
if jit.status() then
  jit.opt.start("hotloop=3", "hotexit=2")
  local sum, list = 0, { 3, 1, 2, x = { y = 4 } }
  for i = 1, 400 do sum = sum + list[i % 3 + 1] + list.x.y + (i % 5 == 0 and 1 or 2) + math.floor(i / 3) end
  local text = ""
  for i = 1, 200 do text = i % 7 == 0 and "" or text .. "x" end
  local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
  fib(15)
  local p, total = ffi.new("heap_point", 1, 2, 3), 0LL
  for i = 1, 200 do p.x = i total = total + p:sum() end
  for i = 1, 200 do local f = function() return i end sum = sum + f() end
  for i = 1, 100 do pcall(next, list) sum = sum + #tostring(i) end
  for i = 1, 100 do local t = { i, i + 1 } t.x = i keep.last = t end
  heap("traces")
  -- While something is recorded: at its beginning, in its middle, when it ends.
  local times = {}
  local function look(what) times[what] = (times[what] or 0) + 1 if times[what] <= 3 then heap(what) end end
  jit.attach(look, "trace")
  local records = 0
  local function look_at_record() records = records + 1 if records % 16 == 5 and records < 100 then heap("record") end end
  jit.attach(look_at_record, "record")
  for i = 1, 100 do local t = { i, list } sum = sum + #t + (i % 2 == 0 and list.x.y or list[2]) end
  for i = 1, 50 do sum = sum + (select("#", debug.traceback()) or 0) end
  jit.attach(look) jit.attach(look_at_record)
  heap("recorded")
end

-- In a coroutine, in a finalizer, below other calls.
wrap(function(...) local mine = { ... } heap("in a coroutine") return mine end)({}, {})
pcall(function(...) local a = { ... } table.sort({ 3, 1, 2 }, function(x, y) if x == 3 then heap("in a comparison") end return x < y end) return a end, {})
string.gsub("a", "a", function() heap("in gsub") end)
do
  local p = proxy(function() heap("in a finalizer") end)
  p = nil
  collectgarbage()
end
collectgarbage("stop")
if jit.status() then
  jit.flush()
  heap("flushed traces")
  collectgarbage()
  heap("no traces")
  for i = 1, 100 do keep.last = { i } end
end

-- Some of everything dies. The collector stops in many places.
local function litter(n)
  for i = 1, n do
    local t = { i, {} }
    local f, g = counter()
    local co = wrap(function(x) local open = { x } local function f() return open end yield(f) end)
    co(t)
    local s, p = "dead" .. i, proxy(function() end)
    local c = ffi.new("int[?]", i)
    if i % 4 == 0 then c = ffi.gc(ffi.new("heap_point"), function() end) end
    if has_buffer and i % 8 == 0 then p = buffer.new():put(s) end
    add(loadstring("return " .. i))
  end
  if jit.status() then for i = 1, n do keep.last = { i, n } end jit.flush() end
end
collectgarbage("setstepmul", 40)
for round = 1, 3 do
  litter(150)
  for i = 1, #keep, 3 do keep[i] = false end
  local last, same = phase(), 0
  for i = 1, 100000 do
    step()
    same = phase() == last and same + 1 or 0
    if same % 40 < 2 then heap("in the cycle") end
    if phase() == 0 and last ~= 0 then break end
    last = phase()
  end
  heap("after the cycle")
end
collectgarbage("setstepmul", 200)
collectgarbage()
collectgarbage()
collectgarbage("stop")
heap("after a full collection")
)LUA";
