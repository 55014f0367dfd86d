#pragma once
// Calls of which LuaJIT leaves no trace, and code that its compiler patches. Given: check, all, as
// in script.h, and
//   loaded(name, f)  compare what f is called in package.loaded; a name that leads to f is right

inline constexpr const char* luajit_script = R"LUA(
local check, all, loaded = check, all, loaded

-- Tail calls: what the caller's instruction names is gone.
local function last(...) check() return ... end
local t = { last = last, deep = { last = last } }
function t:method(...) check() return last(...) end
function t.static(...) return t.last(...) end
function global_tail(...) return last(...) end
local function vararg_tail(...) check() return t.deep.last(...) end
local function chain(n, f) if n == 0 then return f() end return chain(n - 1, f) end
local function to_c() return check() end
local function swap(a, b) check() return b() end
local callable = setmetatable({}, { __call = function(_, ...) check() return last(...) end })
local called_plainly = setmetatable({}, { __call = last })
local Base = {}
Base.__index = Base
function Base:inherited() check() return self:other() end
function Base:other() check() end
local Derived = setmetatable({}, Base)
Derived.__index = Derived
function Derived.new() return setmetatable({ field = last }, Derived) end
local computed = setmetatable({}, { __index = function(_, k) return k == "computed_last" and last or global_tail end })
local list = { last, global_tail, to_c, { last, vararg_tail } }
local tails, plains = {}, {}
for _, e in ipairs { "add", "sub", "mul", "div", "mod", "pow", "unm", "concat", "len", "eq", "lt", "le", "index", "newindex" } do
  tails["__" .. e] = function(...) check() return last(...) end
  plains["__" .. e] = last
end
local events, other_events, plain_events = setmetatable({}, tails), setmetatable({}, tails), setmetatable({}, plains)
local chained = setmetatable({}, { __index = events, __newindex = events })
local function each(parameter, ...)
  local mine, other, guessed = global_tail, last, swap
  last() t.last() t.deep.last() t:method() t.static() global_tail() vararg_tail(1, 2) _G.global_tail()
  mine() other() parameter() chain(3, last) chain(0, mine) to_c() swap(1, last) swap(2, t.last) swap(3, check)
  callable() callable(1) called_plainly() t.call = callable t.call() global_callable = callable global_callable()
  local object = Derived.new() object:inherited() object:other() object.field() Derived.new():inherited()
  computed.computed_last() computed.computed_field() list[1]() list[2]() list[4][1]() list[4][2]() local i = 2 list[i]() list[3]();
  (function() return last() end)(); (function() check() end)(); (mine or swap)(); (parameter and last or guessed)()
  local function inner(...) check() if ... then return vararg_tail(...) end return to_c() end inner() inner(1)
  if parameter == last then other = mine else other = parameter end other()
  for _, f in ipairs(list) do if type(f) == "function" then f() end end
  for a in function(_, i) check() if not i then return last(1) end end do last(a) end
  local m, one = events, 1
  local _ = m + 1, 1 + m, m + m, m - one, one - m, -m, #m, m .. "x", "x" .. m, m < m, m <= m, m > m, m >= m, m.x, m[1], m[one], m ^ 2, m % 2, m / m, m * 2
  m.x = 1 m[1] = 1 m[one] = 1 _ = m == other_events, m ~= other_events, chained.x, chained[1] chained.x = 1 _ = plain_events + 1, plain_events.x
  pcall(last) pcall(global_tail) select("#", last(), t:method())
  last = last t.deep = t.deep
  return parameter(...)
end
for _ = 1, 3 do each(last) each(global_tail) each(vararg_tail, 1) end
local wrapped = coroutine.wrap(function() each(last) global_tail() coroutine.yield() return global_tail() end)
wrapped() wrapped()
-- The same instruction calls a function itself, and another one that calls it.
local function by_either(f) f() end
for _ = 1, 20 do by_either(global_tail) by_either(last) end
-- Values that change while they are called.
local function replaced() replaced = last check() end
replaced()
function renamed() renamed = nil check() end
renamed()

-- Every library function has its name.
for module, functions in pairs(package.loaded) do
  if type(functions) == "table" then
    for name, f in pairs(functions) do if type(f) == "function" then loaded(module .. "." .. tostring(name), f) end end
  end
end

-- What the compiler patches: loops of every kind, functions, returns, recursion up and down, iterators, stitching through C.
local sink = 0
local function leaf(x) sink = sink + x return x end
local function up(n) if n == 0 then return 0 end return 1 + up(n - 1) end
local function down(n, a) if n == 0 then return a end return down(n - 1, a + 1) end
local function varargs(...) return select("#", ...) + leaf(1) end
local function by_iterators(values)
  local n = 0
  for i, v in ipairs(values) do n = n + v leaf(i) end
  for k, v in pairs(values) do n = n + v leaf(k) end
  for k, v in next, values do n = n + v end
  for w in ("a b c d"):gmatch("%a") do n = n + #w end
  return n
end
local function loops(n)
  local total = 0
  for i = 1, n do
    total = total + leaf(i)
    if i % 3 == 0 then total = total + varargs(1, 2) else total = total - 1 end
  end
  local i = 0
  while i < n do i = i + 1 total = total + leaf(i) end
  repeat i = i - 1 if i % 7 == 0 then total = total + 1 end until i <= 0
  for a = 1, 3 do for b = 1, 10 do total = total + a * b end end
  return total + up(30) + down(30, 0) + by_iterators({ 1, 2, 3, 4, 5 })
end
local function checked(n) for i = 1, n do leaf(i) if i % 5 == 0 then check() end t.last(i) end end
local object = Derived.new()
local function checked_methods(n) for i = 1, n do object:inherited() global_tail(i) list[1 + i % 2](i) end end
for _ = 1, 40 do loops(40) end
checked(60) checked_methods(60)
for _, f in ipairs { loops, checked, checked_methods, by_iterators, up, down, varargs, leaf, each } do all(f) end
)LUA";
