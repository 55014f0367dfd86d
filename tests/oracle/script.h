#pragma once
// The Lua side of oracle.cpp, for every Lua from 5.1 on. It is given: VERSION (501 …),
// RELEASE ("Lua 5.4.4"), and
//   check([co])  compare every frame of this (or another) coroutine
//   all(f)       compare every instruction of f and the functions in it
//   strip(f)     f's bytecode without debug information, as a string

inline constexpr const char* names_script = R"LUA(
local check, all, strip = check, all, strip
local load, unpack = loadstring or load, unpack or table.unpack

-- How a function can be called.
local function target(...) check() return ... end
function global_target() check() end
local t = { field = target, nested = { deep = { er = target } }, [1] = target, [2.5] = target, ["a b"] = target }
function t:method(n) check() if n and n > 0 then return self:method(n - 1) end return self end
function t.static() check() end
local key, holder = "field", { t = t }
local function shapes(parameter, ...)
  local mine = target
  check() target() mine() parameter() global_target() _G.global_target()
  t.field() t[key]() t["field"]() t[1]() t[2.5]() t["a b"]() t.nested.deep.er() holder.t.static()
  t:method() t:method(3):method() holder.t:method();
  (target)(); (mine or target)(); (parameter and target)(); (parameter and t.field or target)()
  if parameter then mine() elseif target then target() end;
  (function() check() end)(); (function(...) check(...) return mine end)()(target());
  ({ function() check() end })[1](); ({ in_no_table = target }).in_no_table()
  local copy = mine copy() local other = copy other(mine(copy()))
  for i = 1, 2 do target(i) local inner = target inner() end
  local n = 0 while n < 2 do n = n + 1 t.field(n) end
  repeat n = n - 1 local last = target last() until n == 0
  target(...) select("#", ...) mine(unpack({ ... }))
  local k = "field" t[k]() local tt = t tt.field() tt[k]() tt:method()
  do local scoped = function() end end target()
  return target(parameter(...))
end
local function lowest_register() do local f = function() end end target() do local g g = function() end end target() end
lowest_register();
(function() (function() return target() end)() end)()
shapes(target) shapes(target, 1, 2, 3) shapes(function() check() return check() end)
local function tail(n) if n == 0 then check() return 1 end return tail(n - 1) end
tail(3); (function() return t.method(t, 1) end)()
local function deep(n) if n == 0 then check() else deep(n - 1) end return n end
deep(50)
for a, b in function(_, i) check() if not i then return 1 end end do target(a, b) end
for k, v in pairs(t) do target(k) end

-- Lua called back from C.
pcall(target) pcall(function() local x = target x() end)
xpcall(function() error("x") end, function(m) check() return m end)
table.sort({ 3, 1, 2 }, function(a, b) check() return a < b end)
string.gsub("abc", ".", function(c) target(c) end)
local sum = 0
debug.sethook(function() if sum < 40 then sum = sum + 1 check() end end, "l")
shapes(function() end) debug.sethook()
debug.sethook(function() if sum < 80 then sum = sum + 1 check() end end, "cr")
shapes(function() end) debug.sethook()
local co = coroutine.create(function(...) local inside = target inside() coroutine.yield(check()) t:method() end)
coroutine.resume(co) check(co) coroutine.resume(co) check(co)
local outer = coroutine.wrap(function() local inner = coroutine.wrap(function() check() end) inner() check() end)
outer()

-- Metamethods.
local events = {}
for _, e in ipairs { "add", "sub", "mul", "div", "mod", "pow", "unm", "concat", "len", "eq", "lt", "le", "index",
    "newindex", "call", "idiv", "band", "bor", "bxor", "shl", "shr", "bnot", "close" } do
  events["__" .. e] = function() check() return "r" end
end
local m, m2 = setmetatable({}, events), setmetatable({}, events)
local function meta(up)
  local one = 1
  local _ = m + 1, 1 + m, m + one, m - 1, m * 2, m / 2, m % 3, m ^ 2, -m, m .. "x", "x" .. m, "a" .. "b" .. m
  _ = m + 1000, m - 1.5, 2.5 * m, m + m2, m < m2, m <= m2, m > m2, m >= m2, m == m2, m ~= m2, #m
  _ = pcall(function() return m < 1 end), pcall(function() return 1 < m end), pcall(function() return m >= 1 end)
  _ = m.x, m[1], m[one], m[up], m[1.5] m.x = 1 m[1] = 1 m[one] = 2 m[up] = up m()
  pcall(function() m:missing() end) pcall(function() up.x = m.x.y end)
  if m == m2 then up = 1 end if m < m2 then up = 2 end
  return m.y
end
meta(m)
debug.setmetatable("", { __index = string, __call = function() check() end });
("a constant")() if VERSION > 501 then load('local x = "c" x() local y, z = "s" return y')() end
do local g = setmetatable({}, { __gc = function() check() end }) g = nil collectgarbage() collectgarbage() end

local function fragment(from, text)
  if VERSION < from then return end
  local f = assert(load(text, "=fragment"))
  all(f) f(m, m2, target, t)
end
fragment(502, [[ local m, m2, target, t = ...
  target() check() local _ENV = { check = check, f = target, t = t } check() f() t.field()
  local function up() f() t:method() return f() end up() goto done ::done:: ]])
fragment(503, [[ local m, m2, target = ...
  local one, _ = 1 _ = m & 1, m | 2, m ~ 3, ~m, m << 1, m >> 1, 1 << m, 1 >> m, m // 2, 3 // m, m & m2, m | m2, m ~ m2
  _ = m << m2, m >> m2, m // m2, 1 & m, m & one, m << one, one >> m, 7 | m, 0xffffffffff & m ]])
fragment(504, [[ local m, m2, target = ...
  local function close() return setmetatable({}, { __close = function() target() check() end }) end
  do local a <close> = close() local b <const> = target b() end
  local function returns() local a <close> = close() return target() end returns()
  local function returns_many(...) local a <close>, b = close(), 1 return ... end returns_many(1, 2)
  for i = 1, 3 do local a <close> = close() if i == 2 then break end end
  for k in next, { 1 }, nil, close() do target(k) end
  pcall(function() local a <close> = close() error("x") end)
  coroutine.wrap(function() local a <close> = close() coroutine.yield() end)() ]])
if load("return function(...args) end") then fragment(505, [[ local m, m2, target, t = ...
  local function named(...args) local f = args[1] args[1]() args.n = args.n f() local k = 1 args[k]() return args end
  named(target, 2) named(target)
  local function vector(...args) args[1]() local s = "n" args[s] = target args[s]() end vector(target)
  local function plainly(...a) return a[1](...) end plainly(target) ]]) end
declared = nil
fragment(505, [[
  global check, print; check() global none <const>, setmetatable
  global function declared() check() end declared() ]])
if VERSION >= 505 or (VERSION == 504 and RELEASE >= "Lua 5.4.7") then  -- older: any value named _ENV (ldebug.c, gxf)
  fragment(504, [[ local m, m2, target, t = ... t._ENV = t t._ENV.field() t._ENV._ENV:method() local k = "_ENV" t[k].field() ]])
end

-- Many lines, and lines far apart; many constants: indices beyond RK, beyond Bx.
local lines = {}
for i = 1, 900 do lines[i] = (i % 7 == 0 and "check() " or "local _ = f ") .. ("do end "):rep(i % 5) .. "f(" .. i .. ")" end
for i = 1, 900 do lines[i] = "do " .. lines[i] .. " end" .. ("\n"):rep(i % 150 == 0 and 300 or 1) end
local long = assert(load("local f = function() end " .. table.concat(lines, "\n"), "@long.lua"))
all(long) long()
local many = { "local t = ... local o = {}" }
for i = 1, 300 do many[#many + 1] = "o.k" .. i .. " = t o['n" .. i .. "'] = " .. i + 0.5 end
many[#many + 1] = "o.k299() o:k298() local k = 'k297' o[k]() late_global() o[290.5] = t o[290.5]() for k = 1, 2 do o.k1() end"
many[#many + 1] = "return (function(...) o.k299(o:k298()) return o.k300() end)(...)"
late_global = target
local wide = assert(load(table.concat(many, "\n"), "=wide"))
all(wide) wide(target)
-- 5.1: the count after OP_SETLIST, 540, looks like a call.
local list = assert(load("local f, b, c, d, e, g, h, i = ... f({" .. ("b,"):rep(27000) .. "}) late_global({" .. ("b,"):rep(27000) .. "})"))
all(list) list(target)
if VERSION >= 502 and PROGRAMS >= 100 then
  local n, parts = VERSION >= 504 and 132000 or 263000, { "local o, f, c = ... local all = {" }
  for i = 1, n do parts[#parts + 1] = "'s" .. i .. "'," end
  parts[#parts + 1] = "} f() o.beyond() o:beyond() local k = 'past' o[k]() check() beyond() c() ; ('text')() return o"
  beyond = target
  local huge = assert(load(table.concat(parts, "\n"), "=huge"))
  all(huge) huge({ beyond = target, past = target }, target, target)
end

-- Stripped bytecode.
for _, f in ipairs { shapes, meta, tail, deep } do all(assert(load(strip(f), "=stripped", VERSION > 501 and "b" or nil))) end
local function alone(f, t, check) f() t.field() t:method() local g = f g() check() return f() end
assert(load(strip(alone), "=stripped"))(target, t, check)
assert(load(strip(assert(load("check() local f = check f() f(...)", "=x"))), "=x"))()

-- Random programs: every instruction of them is compared; they are not run.
local seed = 20240229
local function random(n) seed = (seed * 16807) % 2147483647 return seed % n + 1 end
local function pick(list) return list[random(#list)] end
local names = { "a", "b", "c", "d", "e", "f", "_ENV", "self" }
local block
local function expression(d)
  local function e() return expression(d - 1) end
  local simple = { function() return pick(names) end, function() return pick(names) end, function() return random(9) end,
    function() return "'" .. pick { "k", "v", "w" } .. "'" end, function() return pick { "nil", "true", "..." } end }
  if d <= 0 then return tostring(pick(simple)()) end
  return pick { function() return tostring(pick(simple)()) end,
    function() return "(" .. e() .. ")." .. pick { "x", "y", "z" } end, function() return "(" .. e() .. ")[" .. e() .. "]" end,
    function() return pick(names) .. "." .. pick { "x", "y" } end, function() return pick(names) .. "[" .. pick(names) .. "]" end,
    function() return pick(names) .. "(" .. e() .. ")" end, function() return "(" .. e() .. ")(" .. e() .. ", " .. e() .. ")" end,
    function() return pick(names) .. ":m" .. random(3) .. "(" .. e() .. ")" end,
    function() return pick(names) .. "." .. pick { "x", "y" } .. "(" .. e() .. ")" end,
    function() return "(" .. e() .. pick { " and ", " or ", " == ", " < ", " .. ", " + ", " - " } .. e() .. ")" end,
    function() return "(" .. e() .. " and " .. e() .. " or " .. e() .. ")" end,
    function() return pick { "not ", "-", "#" } .. "(" .. e() .. ")" end,
    function() return "{" .. e() .. ", x = " .. e() .. ", " .. e() .. "}" end,
    function() return "(function(" .. pick(names) .. ", ...) " .. block(d - 1) .. " end)(" .. e() .. ")" end,
    function() return "function(...) " .. block(d - 1) .. " end" end }()
end
local function statement(d)
  local function e() return expression(d - 1) end
  return pick { function() return "local " .. pick(names) .. " = " .. e() end,
    function() return "local " .. pick(names) .. ", " .. pick(names) .. " = " .. e() end,
    function() return pick(names) .. " = " .. e() end, function() return pick(names) .. "(" .. e() .. ")" end,
    function() return pick(names) .. "." .. pick { "x", "y" } .. " = " .. e() end,
    function() return pick(names) .. ", " .. pick(names) .. " = " .. e() .. ", " .. e() end,
    function() return pick(names) .. ":m(" .. e() .. ", " .. e() .. ")" end,
    function() return pick(names) .. ".x(" .. e() .. ")\n" .. pick(names) .. "()" end,
    function() return "if " .. e() .. " then " .. block(d - 1) .. " elseif " .. e() .. " then " .. block(d - 1) .. " else " .. block(d - 1) .. " end" end,
    function() return "while " .. e() .. " do " .. block(d - 1) .. pick { " break", "" } .. " end" end,
    function() return "repeat " .. block(d - 1) .. " until " .. e() end, function() return "do " .. block(d - 1) .. " end" end,
    function() return "for i = " .. e() .. ", 5 do " .. block(d - 1) .. " end" end,
    function() return "for " .. pick(names) .. ", v in " .. e() .. " do " .. block(d - 1) .. " end" end,
    function() return "local function " .. pick(names) .. "(...) " .. block(d - 1) .. " end" end,
    function() return "do local f = function(...) " .. block(d - 2) .. " end end" end }()
end
function block(d)
  if d <= 0 then return "" end
  local list = {}
  for i = 1, random(4) do list[i] = statement(d) end
  return table.concat(list, pick { "; ", ";\n", "; \n\n" })
end
local loaded = 0
for _ = 1, PROGRAMS do
  local f = load("local u, a = ...; " .. block(5) .. "; " .. block(5) .. ("\n"):rep(random(200)) .. block(4), "=random")
  if f then
    loaded = loaded + 1
    all(f)
    if random(4) == 1 then all(assert(load(strip(f), "=stripped", VERSION > 501 and "b" or nil))) end
  end
end
assert(loaded > PROGRAMS * 0.6, "random programs do not compile: " .. loaded)
all(debug.getinfo(1, "f").func)
)LUA";
