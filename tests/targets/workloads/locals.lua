-- locals.lua KIND: makes calls with every kind of variable and value, prints the results of debug.getlocal and debug.getupvalue for each, and
-- waits in io.read, or, with KIND spin, works without calling anything. `coroutine`: the same in a coroutine.
--
-- One line each: FRAME name | KIND TAB name TAB value; values have luaspy's form, which docs/dump.md describes. Innermost frame first.
local kind = arg and arg[1] or "wait"
local getlocal, getupvalue, getinfo = debug.getlocal, debug.getupvalue, debug.getinfo
local format, byte, gsub, sub, find, match = string.format, string.byte, string.gsub, string.sub, string.find, string.match
local floor, concat, sort, write = math.floor, table.concat, table.sort, io.write
local has_ffi, ffi = pcall(require, "ffi")
has_ffi = has_ffi and jit ~= nil   -- LuaTeX has its own ffi, with userdata
if not has_ffi then ffi = nil end
local version = _VERSION

local escapes = {["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\"}
local function quote(s)
  local length = #s
  if length > 64 then s = sub(s, 1, 64) end
  local text = gsub(s, '[%c"\\\127-\255]', function(c) return escapes[c] or format("\\x%02x", byte(c)) end)
  text = gsub(text, "\\xc3\\xa4", "\195\164")   -- the only valid non-ASCII character here
  return '"' .. text .. '"' .. (length > 64 and format("\226\128\166(%d bytes)", length) or "")
end

local show
local function place(f)
  local info = getinfo(f, "S")
  if info.what == "C" then return "C" end
  return format("function (%s:%d)", sub(info.source, 2), info.linedefined)
end

local names = {}
for _, module in ipairs({"_G", "string", "table", "math", "io", "os", "debug", "coroutine", has_ffi and "ffi" or nil}) do
  for name, f in pairs(package.loaded[module]) do
    if type(f) == "function" then
      local new = "function " .. (module == "_G" and "" or module .. ".") .. name .. (getinfo(f, "S").what == "C" and " [C]" or "")
      local old = names[f] or new
      names[f] = (#new < #old or #new == #old and new < old) and new or old
    end
  end
end
local files = {}
local function pointer(v) return "0x" .. match(tostring(v), ": 0x0*(%x+)") end

local function table_text(t, depth)
  if t == _G then return "<globals>" end
  local name = (getmetatable(t) or {}).__name
  name = name and name .. " " or ""
  if depth > 0 then return name .. (next(t) ~= nil and "{\226\128\166}" or "{}") end
  local parts, n, more = {}, 0, 0
  local next_index = 1
  for k, v in next, t do
    if n == 8 then more = more + 1
    else
      n = n + 1
      local key
      if k == next_index then key, next_index = "", next_index + 1
      elseif type(k) == "string" and find(k, "^[%a_][%w_]*$") and k ~= "end" then key = k .. " = "
      else key = "[" .. show(k, 1) .. "] = " end
      parts[n] = key .. show(v, 1)
    end
  end
  local text = concat(parts, ", ")
  if more > 0 then text = text .. format("%s\226\128\166(%d more)", n > 0 and ", " or "", more) end
  return name .. "{" .. text .. "}"
end

function show(v, depth)
  local t = type(v)
  if t == "nil" or t == "boolean" or t == "number" then return tostring(v) end
  if t == "string" then return quote(v) end
  if t == "table" then return table_text(v, depth or 0) end
  if t == "function" then return names[v] or place(v) end
  if t == "cdata" then
    if ffi.istype("int64_t", v) or ffi.istype("uint64_t", v) then return tostring(v) end
    return "cdata " .. pointer(v)
  end
  if t == "thread" then return "coroutine " .. pointer(v) .. " (" .. (coroutine.status(v)) .. ")" end
  if t == "userdata" then return files[v] and gsub(tostring(v), "0x0+", "0x") or find(tostring(v), "^userdata: 0x") and "userdata " .. pointer(v) or "userdata" end
  return t
end

-- 5.1 cannot report varargs; they are these.
local old_varargs = {}
if version == "Lua 5.1" and not jit then
  old_varargs = {innermost = {n = 3, nil, "second", nil}, numbers = {n = 3, 1, nil, 3}, main = {n = 1, kind}}
end

-- Prints the variables of one level.
local function tell(level, name)
  write("FRAME\t", name, "\n")
  local function get(n)
    local name, value = getlocal(level + 2, n)   -- not a tail call: otherwise LuaJIT would not count this function as a level
    return name, value
  end
  local info = getinfo(level + 1, "fS")
  local i = 1
  while true do
    local n, v = get(i)
    if info.what == "C" and n then
      write("temporary\t(C temporary) ", i, "\t", show(v), "\n")
    else
      if not n or find(n, "^%(%*?temporary") then break end
      write("local\t", n, "\t", show(v), "\n")
    end
    i = i + 1
  end
  i = -1
  while info.what ~= "C" do
    local n, v = get(i)
    if old_varargs[name] and -i <= old_varargs[name].n then n, v = "", old_varargs[name][-i] end
    if not n then break end
    write("vararg\t", "(vararg) " .. -i, "\t", show(v), "\n")
    i = i - 1
  end
  i = 1
  while true do
    local n, v = getupvalue(info.func, i)
    if not n then break end
    write("upvalue\t", n, "\t", show(v), "\n")
    i = i + 1
  end
end

local shared = 10
local function set_shared(v) shared = v end
local closed
do
  local captured = {1, 2, captured = true}
  closed = function() return captured, shared end
end
local gone = coroutine.create(function() end)
coroutine.resume(gone)
local waiting = coroutine.create(function() coroutine.yield() end)
coroutine.resume(waiting)
local fresh = coroutine.create(function() end)
files[io.stdout] = true
local closed_file = io.tmpfile()
if closed_file then closed_file:close(); files[closed_file] = true end

local waits = kind ~= "spin"
local frames = {}   -- names, innermost first

-- Prints everything, innermost first; `inner` calls it right before it waits.
local function tell_all()
  for i, name in ipairs(frames) do tell(i + 1, name) end
  write("READY\n")
  io.stdout:flush()
end

local function innermost(a, b, ...)
  local text, long, hostile = "plain", ("x"):rep(1000), 'a"b\\c\n\r\t\0\1\27[31m\127\195\164\255\194\155'
  do
    local ended = "must not be shown"
    set_shared(ended and 20)
  end
  local text = "shadows"
  local empty, nothing, yes, no = "", nil, true, false
  local read, loop = io.read, 0
  frames[1] = "innermost"
  tell_all()
  if waits then
    read("*l", "*n")
  else
    while true do loop = 1 - loop end
  end
  return a, b, text, long, hostile, empty, nothing, yes, no, ...
end

local function numbers(...)
  local zero, minus_zero, one, tenth, third = 0.0, -0.0, 1, 0.1, 1 / 3
  local big, small, huge, minus_huge = 1e100, 5e-324, math.huge, -math.huge
  local nan = huge - huge
  local most, least = math.maxinteger or 2 ^ 53, math.mininteger or -2 ^ 53
  local float_most, million = 2 ^ 63, 1e15
  local third_nil = select("#", ...)
  frames[2] = "numbers"
  local r = innermost("first", nil, nil, "second", nil)
  return r, zero, minus_zero, one, tenth, third, big, small, nan, minus_huge, most, least, float_most, million, third_nil
end

local function tables(self, ...)
  local array, none = {1, 2, 3, "four", {5}, {}, print}, {}
  local sparse = {[1] = "a", [2] = "b", [4] = "d"}
  local many = {}
  for i = 1, 1000 do many[i] = i end
  local one = {name = "x"}
  local odd = {["a b"] = 1}
  local keyword = {["end"] = true}
  local by_boolean = {[true] = {1}}
  local by_float = {[1.5] = 2}
  local by_integer = {[-7] = "minus"}
  local named = setmetatable({1}, {__name = "My.Type"})
  local globals, cyclic = _G, {}
  cyclic[1] = cyclic
  local mixed = {1, 2, n = 2}
  local holes = {1, nil, 3}
  local deep = {{{{}}}}
  frames[3] = "tables"
  local r = numbers(1, nil, 3)
  return r, self, array, none, sparse, many, one, odd, keyword, by_boolean, by_float, by_integer, named, globals, cyclic, mixed, holes, deep, ...
end

local function others(missing, missing_too)
  local output, shut = io.stdout, closed_file
  local c_function, lua_function, f = print, quote, closed
  local dead, suspended, not_begun = gone, waiting, fresh
  local cdata, unsigned, other
  if has_ffi then cdata, unsigned, other = ffi.new("int64_t", -123), ffi.new("uint64_t", -1), ffi.new("int[4]") end
  local function open() output = output; return f, shared end
  frames[4] = "others"
  local r = tables({self = true})
  return r, open, shut, c_function, lua_function, dead, suspended, not_begun, cdata, unsigned, other, missing, missing_too
end

local function loops(limit)
  frames[5] = "loops"
  local r
  for i = limit, limit do
    for key, value in pairs({one = 1}) do
      for k in function(_, k) if not k then return 1 end end do
        local inside = i
        r = others(inside)
      end
    end
  end
  return r
end

local function vararg_only(...)
  frames[6], frames[7] = "pcall", "vararg_only"
  local good, r = pcall(loops, 3)
  return good, r, ...
end

local function run()
  frames[8] = "run"
  local r = vararg_only()
  return r
end

if kind == "coroutine" then
  coroutine.wrap(run)()
else
  frames[9] = "main"
  local r = run()
end
