-- The program that steps.cpp steps through. All functions have different names. A line that calls a function contains its name, in the code or in a comment.
-- A function that is called in other ways lists its callers after "from": C functions, functions that raise errors, or "*" for any. A function that is
-- called by a tail call has the word "tailed".
local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua"
io.stdout:setvbuf("no")
local load = loadstring or load
local unpack = table.unpack or unpack
local is_51 = _VERSION == "Lua 5.1"
local has_close = coroutine.close ~= nil

local function leaf(n) -- tailed; from: pcall
  return n + 1
end
local function middle(n)
  local r = leaf(n)
  r = leaf(r)
  return (r)
end
local function extra(...) -- tailed; from: select
  local n = leaf(1)
  return select("#", ...) + n
end
local function plain()
  local r = middle(1)
  r = r + extra()
  r = r + extra(1, 2, 3)
  for i = 1, 2 do
    r = r + leaf(i) + math.abs(r)
  end
  return r
end

local tail_odd
local function tail_even(n) -- tailed
  if n == 0 then
    return leaf(n)
  end
  return tail_odd(n - 1)
end
tail_odd = function(n) -- tailed
  return tail_even(n - 1)
end
local function tail_native(n) -- tailed
  return math.abs(n)
end
local function tail_extra(...) -- tailed
  return extra(...)
end
local function tail_callable(n) -- tailed
  return setmetatable({}, {__call = extra})(n) -- extra
end
local function tails()
  local r = tail_even(4)
  r = tail_native(r) -- abs
  r = tail_extra(1, 2, 3)
  r = tail_extra(tail_native(2), 2) -- abs
  r = tail_callable(2)
  return (r)
end

local function thrower(n) -- from: pcall
  if n == 0 then
    error("thrown")
  end
  thrower(n - 1)
  return n
end
local function indexer(n) -- from: pcall
  local nothing
  return (nothing[n])
end
local function handler(message) -- from: error indexer
  local n = leaf(1)
  return message
end
local function fails_by_index() -- from: xpcall
  local r = indexer(1)
  return (r)
end
local function fails_by_error() -- from: xpcall
  thrower(1)
  return 1
end
local function errors()
  local ok = pcall(thrower, 2)
  ok = pcall(leaf, 1)
  ok = pcall(indexer, 1) -- indexer
  ok = pcall(error, "x") -- error
  ok = pcall(pcall, error) -- error
  ok = xpcall(fails_by_index, handler)
  ok = xpcall(fails_by_error, handler)
  ok = pcall(string.rep) -- rep
  return ok
end

local function giver(n)
  coroutine.yield(n)
  return n
end
local function gives(n) -- from: resume wrapped
  for i = 1, 2 do
    giver(i)
  end
  return leaf(n)
end
local function gives_then_fails(n) -- from: resume wrapped
  giver(n)
  thrower(1)
  return 1
end
local function gives_nested(n) -- from: resume wrapped
  local inner = coroutine.create(gives)
  coroutine.resume(inner, n)
  giver(n)
  coroutine.resume(inner, n)
  return n
end
local function gives_protected(n) -- from: resume wrapped
  local ok = pcall(giver, n) -- giver
  ok = pcall(gives_then_fails, n) -- gives_then_fails
  return n
end
local function gives_in_iterator(state, n)
  if n < 2 then
    coroutine.yield(n)
    return n + 1
  end
end
local function gives_in_loop() -- from: resume wrapped
  for i in gives_in_iterator, nil, 0 do -- gives_in_iterator
    leaf(i)
  end
end
local function coroutines()
  local co = coroutine.create(gives)
  while coroutine.resume(co, 2) do
    leaf(1)
  end
  local wrapped = coroutine.wrap(gives)
  wrapped(1)
  wrapped(1)
  co = coroutine.create(gives_then_fails)
  coroutine.resume(co, 1)
  coroutine.resume(co, 1)
  wrapped = coroutine.wrap(gives_then_fails)
  wrapped(1)
  pcall(wrapped, 1) -- wrapped
  co = coroutine.create(gives_nested)
  coroutine.resume(co, 1)
  coroutine.resume(co, 1)
  if not is_51 or jit then
    co = coroutine.create(gives_protected)
    coroutine.resume(co, 1)
    coroutine.resume(co, 1)
    coroutine.resume(co, 1)
    co = coroutine.create(gives_in_loop)
    coroutine.resume(co, 1)
    coroutine.resume(co, 1)
    coroutine.resume(co, 1)
  end
end

local function deep(n)
  if n == 0 then
    return 0
  end
  return 1 + deep(n - 1)
end
local function spread(...)
  local n = select("#", ...)
  return n + leaf(1)
end
local function goes_deep() -- from: wrapped
  local r = deep(30)
  return (r)
end
local many = {}
for i = 1, 300 do many[i] = i end
local function spreads() -- from: wrapped
  local r = spread(unpack(many))
  return (r)
end
local function tail_spreads() -- from: wrapped
  return spread(unpack(many)) -- tailed
end
local function stacks()
  local wrapped = coroutine.wrap(goes_deep)
  wrapped()
  wrapped = coroutine.wrap(spreads)
  wrapped()
end

local finalized = 0
local function finalizer(object) -- from: *
  finalized = leaf(finalized)
end
local meta = {__gc = finalizer}
local function with_finalizer()
  if newproxy then
    local proxy = newproxy(true)
    getmetatable(proxy).__gc = finalizer
    return proxy
  end
  return (setmetatable({}, meta))
end
local function allocate(n)
  local t
  for i = 1, n do
    t = {i, name = "a" .. i}
  end
  return t
end
local function collections()
  with_finalizer()
  with_finalizer()
  local count = collectgarbage("count")
  collectgarbage("restart")
  collectgarbage("step", 1)
  allocate(3)
  collectgarbage("step", 10)
  allocate(20)
  collectgarbage("step", 1000)
  collectgarbage("stop")
end
local function full_collections()
  with_finalizer()
  collectgarbage()
  allocate(5)
end

local function adds(a, b)
  return leaf(1)
end
local function indexes(t, key)
  return leaf(2)
end
local function stores(t, key, value)
  rawset(t, key, leaf(3))
end
local function calls(self, n)
  return leaf(n)
end
local function equals(a, b)
  return leaf(1) == 2
end
local function less(a, b) -- from: sort
  local n = leaf(1)
  return n == 3
end
local function joins(a, b) -- from: concat
  return "joined"
end
local function length(a)
  return leaf(1)
end
local function to_text(a) -- tailed; from: tostring
  local n = leaf(1)
  return "text"
end
local object_meta = {__add = adds, __index = indexes, __newindex = stores, __call = calls, __eq = equals, __lt = less, __concat = joins, __len = length,
                     __tostring = to_text}
local function metamethods()
  local a, b = setmetatable({}, object_meta), setmetatable({}, object_meta)
  local r = a + b -- adds
  r = a.field -- indexes
  a.field = 1 -- stores
  r = a(1) -- calls
  r = a == b -- equals
  r = a < b -- less
  r = a .. b -- joins
  r = a .. "x" .. 1 -- joins
  r = #a -- length
  r = tostring(a)
  r = a.field == a.other -- indexes
  table.sort({a, b})
end

local function before(a, b) -- from: sort
  return a < b
end
local function replace(word) -- from: gsub
  local n = leaf(1)
  return word .. n
end
local function iterate(t, i)
  if i < 2 then
    return leaf(i)
  end
end
local function callbacks()
  table.sort({3, 1, 2}, before)
  local text = string.gsub("a b", "%a", replace)
  for i in iterate, {}, 0 do -- iterate
    text = text .. i
  end
  for k, v in pairs({1, x = 2}) do -- next iterator
    text = text .. k
  end
  for word in string.gmatch("a b", "%a") do -- iterator unnamed
    text = text .. word
  end
end

local pieces_given
local function piece() -- from: load
  pieces_given = leaf(pieces_given)
  if pieces_given == 1 then
    return "return 1"
  end
end
called_by_loaded = function(n) -- from: loaded
  return (leaf(n))
end
local function loads()
  local chunk = load("local r = called_by_loaded(1) return r", "=loaded") -- loadstring
  chunk() -- loaded
  if not is_51 then
    pieces_given = 0
    chunk = load(piece, "=pieces")
    chunk() -- pieces
  end
  pcall(load, "syntax error") -- load
end
local function requires()
  package.loaded.steps_module = nil
  local module = require("steps_module")
  module.imported(1)
end

local hooked = 0
local function hook(event) -- from: *
  hooked = leaf(1)
end
local function hooks()
  debug.sethook(hook, "crl")
  middle(1)
  pcall(thrower, 1)
  debug.sethook()
end

local phases = {plain = plain, tails = tails, errors = errors, coroutines = coroutines, stacks = stacks, collections = collections,
                full_collections = full_collections, metamethods = metamethods, callbacks = callbacks, loads = loads, requires = requires, hooks = hooks}
local names = {"plain", "tails", "errors", "coroutines", "stacks", "collections", "metamethods", "callbacks", "loads", "requires", "hooks",
               "full_collections"}
local function add_phases(file)
  local more = dofile(folder .. file)
  for i = 1, #more, 2 do
    names[#names + 1] = more[i]
    phases[more[i]] = more[i + 1]
  end
end
if has_close then
  add_phases("steps_close.lua")
end
if jit and jit.status() then
  add_phases("steps_jit.lua")
end
collectgarbage()
collectgarbage("stop")
io.write("READY\n")
io.read()
while true do
  for i = 1, #names do
    local phase = phases[names[i]]
    io.write(names[i])
    phase() -- any_phase
    io.write("end")
  end
end
