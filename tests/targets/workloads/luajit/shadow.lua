-- shadow.lua: does everything that LuaJIT can do with its stacks, forever, and keeps a table that shows at every instant which functions are
-- running: it stores into the table when it enters a function, leaves one, and reaches a line. Machine code also stores, in the order of the
-- program, so that the table includes functions that a trace has inlined.
--
--   shadow.lua on|off         prints the table's address ("SHADOW address stride finalizer thrower") and "READY", and runs, with machine code or without
--   shadow.lua pairs FILE     like mix.lua: writes which Lua function was called by which, and ends
--
-- The comments in double brackets become code:
--
--   [[in]]    the function is entered, on the line of its "function"      [[out]]      it is left
--   [[main]]  the same for a main chunk
--   [[at]]    its line is executed                                        [[loop]]     the loop that ends here is at its head again
--   [[back]]  after a pcall or a resume: this function continues          [[resumed]]  after a yield
--   [[body]]  as [[in]], of the coroutine A with the part B of the table
--
-- The table: [1] is the index of the innermost function. Each coroutine has a part of `stride` slots: [B] is the index of its resumer's
-- innermost function, [B + 1] the coroutine's address A, and from [B + 2] on there are two slots for each function that
-- runs in it, outermost first: its first line and its current line. The main thread has the first part, from [stride] on.
local stride = 8192

local function expand(text, offset)
  local line, loops = offset, {}
  local code = {
    ["in"] = "local sp = M[1] + 2; M[sp] = %d; M[sp + 1] = %d; local _ = M[2]; M[1] = sp;",
    ["at"] = "M[sp + 1] = %d;",
    -- LuaJIT drops a store if no other access can occur before the next store to the same place (lj_opt_mem.c, lj_opt_dse_ahstore). The
    -- load of a slot that may alias it prevents that.
    ["out"] = "M[sp + 1] = %d; _ = M[2]; M[1] = sp - 2;",
    ["loop"] = "M[sp + 1] = %d; M[sp + 1] = %d;",
    ["back"] = "M[sp + 1] = %d; M[1] = sp;",
    ["body"] = "M[B] = M[1]; M[B + 1] = A; local sp = B + 2; M[sp] = %d; M[sp + 1] = %d; local _ = M[2]; M[1] = sp;",
    ["resumed"] = "M[sp + 1] = %d; M[sp - sp % 8192] = M[1]; M[1] = sp;",
  }
  return (text:gsub("[^\n]*\n", function(source)
    line = line + 1
    if source:find(" do\n$") then loops[#loops + 1] = line end
    return (source:gsub("%-%-%[%[(%a+)%]%]", function(word)
      if word == "main" then return (code["in"]:gsub("%%d", offset, 1):gsub("%%d", line)) end
      if word == "loop" then return (code.loop:gsub("%%d", line, 1):gsub("%%d", table.remove(loops))) end
      return code[word] and (code[word]:gsub("%%d", line))
    end))
  end))
end

if not SHADOW then
  SHADOW = expand
  local file = assert(io.open(arg[0]))
  local text = file:read("*a")
  file:close()
  return assert(loadstring(expand(text, 0), "@shadow.lua"))(...)
end

local has_new, new = pcall(require, "table.new")
M = has_new and new(24 * stride, 0) or {}
local M = M
for i = 0, 24 * stride do M[i] = 0 end
local free = {}
for part = 2, 22 do free[#free + 1] = part * stride end
M[1] = stride
--[[main]]

local unpack = table.unpack or unpack
local recording, seen = arg[1] == "pairs", {}
if arg[1] ~= "on" then pcall(jit.off) end

local function place(info)
  if not info or info.what == "C" then return "=[C]" end
  if info.linedefined < 0 then return "=[builtin:" .. info.source .. "]" end
  return info.source .. ":" .. info.linedefined
end
local function pair(caller, callee) seen[caller .. " -> " .. callee] = true end
local function on_event()
  local callee = debug.getinfo(2, "S")
  if callee then pair(place(debug.getinfo(3, "S")), place(callee)) end
end

-- Only C functions are called between two stores, because these do not need stores of their own.
local function address_of(thread) --[[in]]
  --[[at]] local text = tostring(thread)
  --[[at]] local value = tonumber(text:sub(9))
  --[[out]] return value
end

-- ---- the work, a function for each way to run Lua

local function arithmetic(n) --[[in]]
  --[[at]] local x = 1
  --[[at]] for i = 1, n do
    --[[at]] x = (x * 31 + i) % 65537
  --[[loop]] end
  --[[out]] return x
end

local floor = math.floor
local function halve(x) --[[in]]
  --[[at]] local r = floor(x / 2)
  --[[out]] return r
end
local function step(x, i) --[[in]]
  --[[at]] local y = halve(x) + i
  --[[at]] if y > 1000 then y = y % 997 end
  --[[out]] return y
end
local function inlined(n) --[[in]]
  --[[at]] local x = n
  --[[at]] for i = 1, n do
    --[[at]] x = step(x, i)
    --[[at]] x = step(x * 1.5, -i)
  --[[loop]] end
  --[[out]] return x
end

local function fill(t, n) --[[in]]
  --[[at]] for i = 1, n do
    --[[at]] t[i] = { value = i, text = "x" .. i % 10 }
  --[[loop]] end
  --[[out]]
end
local function total(t) --[[in]]
  --[[at]] local sum = 0
  --[[at]] for i, entry in ipairs(t) do
    --[[at]] sum = sum + entry.value * #entry.text
  --[[loop]] end
  --[[out]] return sum
end
local function tables(n) --[[in]]
  --[[at]] local t = {}
  --[[at]] fill(t, n)
  --[[at]] local sum = total(t)
  --[[at]] for key, entry in pairs(t) do
    --[[at]] sum = sum + key * entry.value
  --[[loop]] end
  --[[out]] return sum
end

local function count(...) --[[in]]
  --[[at]] local n = select("#", ...)
  --[[out]] return n
end
local function shuffle(...) --[[in]]
  --[[at]] local n = count(...)
  --[[out]] return n, ...
end
local function varargs(n) --[[in]]
  --[[at]] local all, last = shuffle(unpack({}, 1, n))
  --[[at]] local again = count(last, all)
  --[[out]] return all + again
end
local function mixed(a, ...) --[[in]]
  --[[at]] local b, c = ...
  --[[at]] local x = count(...) + (b or a) + (c or a)
  --[[out]] return x
end
local function many_varargs(n) --[[in]]
  --[[at]] local x = 0
  --[[at]] for i = 1, n do
    --[[at]] x = x + mixed(i, x % 7, i)
  --[[loop]] end
  --[[out]] return x
end

local function strings(n) --[[in]]
  --[[at]] local parts = {}
  --[[at]] for i = 1, n do
    --[[at]] parts[i] = ("%d:%s"):format(i, tostring(i * 0.5))
  --[[loop]] end
  --[[at]] local text = table.concat(parts, ";")
  --[[at]] local size = #text:upper() + #text:rep(3) + #text:reverse():sub(5, -5)
  --[[out]] return size
end

local function replace(word) --[[in]]
  --[[at]] local result = #word > 2 and arithmetic(#word) or word
  --[[out]] return result
end
local function substitute(n) --[[in]]
  --[[at]] local text = ("alpha be gamma "):rep(n):gsub("%a+", replace)
  --[[out]] return text
end

local function ascending(a, b) --[[in]]
  --[[at]] local is = a < b
  --[[out]] return is
end
local function sorting(n) --[[in]]
  --[[at]] local values, x = {}, n
  --[[at]] for i = 1, n do
    --[[at]] x = (x * 1103515245 + 12345) % 2147483648
    --[[at]] values[i] = x
  --[[loop]] end
  --[[at]] table.sort(values, ascending)
  --[[out]] return values[1]
end

local vector = {}
vector.__index = function(_, key) --[[in]]
  --[[at]] local x = arithmetic(#key)
  --[[out]] return x
end
vector.__newindex = function(self, key, value) --[[in]]
  --[[at]] rawset(self, key, value + arithmetic(2))
  --[[out]]
end
vector.__add = function(a, b) --[[in]]
  --[[at]] local sum = setmetatable({ x = a.x + b.x }, vector)
  --[[out]] return sum
end
vector.__lt = function(a, b) --[[in]]
  --[[at]] local is = a.x < b.x
  --[[out]] return is
end
vector.__eq = function(a, b) --[[in]]
  --[[at]] local is = a.x == b.x
  --[[out]] return is
end
vector.__concat = function(a, b) --[[in]]
  --[[at]] local text = tostring(a) .. tostring(b)
  --[[out]] return text
end
vector.__tostring = function(self) --[[in]]
  --[[at]] local text = "<" .. self.x .. ">"
  --[[out]] return text
end
vector.__call = function(self, n) --[[in]]
  --[[at]] local x = self.x + arithmetic(n)
  --[[out]] return x
end
vector.__unm = function(self) --[[in]]
  --[[at]] local negative = setmetatable({ x = -self.x }, vector)
  --[[out]] return negative
end
local function metamethods(n) --[[in]]
  --[[at]] local a, b = setmetatable({ x = n }, vector), setmetatable({ x = 2 }, vector)
  --[[at]] a.y = 3
  --[[at]] local c = a + b + -b
  --[[at]] local less = c < a
  --[[at]] local equal = c == b
  --[[at]] local text = a .. b
  --[[at]] local called = c(5)
  --[[at]] local missing = c.missing
  --[[out]] return less, equal, text, called, missing
end
local function many_metamethods(n) --[[in]]
  --[[at]] local a, x = setmetatable({ x = n }, vector), 0
  --[[at]] for i = 1, n do
    --[[at]] x = x + a.missing
    --[[at]] x = x + a(3)
  --[[loop]] end
  --[[out]] return x
end

local function thrower(n) --[[in]]
  --[[at]] if n > 3 then error({ n }) end
  --[[at]] local x = arithmetic(n)
  --[[out]] return x
end
local function handler(message) --[[in]]
  --[[at]] local x = arithmetic(3)
  --[[out]] return x and message
end
local function throws_far() --[[in]]
  --[[at]] thrower(9)
  --[[out]]
end
local function failing(n) --[[in]]
  --[[at]] local bad = 0
  --[[at]] for i = 1, n do
    --[[at]] local good = pcall(thrower, i % 6)
    --[[back]] if not good then bad = bad + 1 end
  --[[loop]] end
  --[[at]] xpcall(throws_far, handler)
  --[[back]] --[[out]] return bad
end
local function safe(n) --[[in]]
  --[[at]] local x = 0
  --[[at]] for i = 1, n do
    --[[at]] local _, r = pcall(arithmetic, i % 3)
    --[[back]] x = x + r
  --[[loop]] end
  --[[out]] return x
end

local function recurse(n) --[[in]]
  --[[at]] local x
  --[[at]] if n == 0 then x = arithmetic(20) else x = recurse(n - 1) + 1 end
  --[[out]] return x
end
local function recursion(n) --[[in]]
  --[[at]] local _, x = pcall(recurse, 150 + n * 237)
  --[[back]] --[[out]] return x
end
local function fibonacci(n) --[[in]]
  --[[at]] local x = n
  --[[at]] if n > 1 then x = fibonacci(n - 1) + fibonacci(n - 2) end
  --[[out]] return x
end

local odd
local function even(n) --[[in]]
  --[[at]] local done = n == 0
  --[[out]] if done then return true end return odd(n - 1)
end
function odd(n) --[[in]]
  --[[at]] local done = n == 0
  --[[out]] if done then return false end return even(n - 1)
end
local function tail_calls(n) --[[in]]
  --[[at]] local result = even(n)
  --[[out]] return result
end
local function to_c(n) --[[in]]
  --[[out]] return select(1, n, n)
end
local function tail_calls_c(n) --[[in]]
  --[[at]] local x = 0
  --[[at]] for i = 1, n do
    --[[at]] x = x + to_c(i)
  --[[loop]] end
  --[[out]] return x
end

local nested
local function nest(A, B, depth, body) --[[body]]
  --[[at]] coroutine.yield(depth)
  --[[resumed]] local result = nested(depth - 1, body)
  --[[out]] return result
end
function nested(depth, body) --[[in]]
  --[[at]] local result
  --[[at]] if depth == 0 then
    --[[at]] result = body(depth)
    --[[out]] return result
  end
  --[[at]] local B = table.remove(free)
  --[[at]] local thread = coroutine.create(nest)
  --[[at]] coroutine.resume(thread, address_of(thread), B, depth, body)
  --[[back]] local good
  --[[at]] good, result = coroutine.resume(thread)
  --[[back]] assert(good, result)
  --[[at]] free[#free + 1] = B
  --[[out]] return result
end
local function coroutines(n) --[[in]]
  --[[at]] local x = nested(n % 5 + 1, arithmetic)
  --[[out]] return x
end

local function start_substitute(A, B, n) --[[body]]
  --[[at]] local text = substitute(n)
  --[[out]] return text
end
local function in_coroutine(word) --[[in]]
  --[[at]] local B = table.remove(free)
  --[[at]] local thread = coroutine.create(start_substitute)
  --[[at]] local good, text = coroutine.resume(thread, address_of(thread), B, #word)
  --[[back]] assert(good, text)
  --[[at]] free[#free + 1] = B
  --[[out]] return text
end
local function crossed() --[[in]]
  --[[at]] local text = (("ab cdefg"):gsub("%a+", in_coroutine))
  --[[out]] return text
end

local function produce(n) --[[in]]
  --[[at]] for i = 1, n do
    --[[at]] coroutine.yield(i)
    --[[resumed]]
  --[[loop]] end
  --[[out]]
end
local function generate(state) local A, B = state.A, state.B --[[body]]
  --[[at]] produce(state.n)
  --[[at]] free[#free + 1] = B
  --[[out]]
end
if recording then pair("=[C]", place(debug.getinfo(generate, "S"))) end
local function generator(n) --[[in]]
  --[[at]] local state = { n = n, B = table.remove(free) }
  --[[at]] local wrapped = coroutine.wrap(generate)
  --[[at]] local _, thread = debug.getupvalue(wrapped, 1)
  --[[at]] state.A = address_of(thread)
  --[[out]] return wrapped, state
end
local function iterators(n) --[[in]]
  --[[at]] local sum = 0
  --[[at]] for i in generator(n) do
    --[[back]] sum = sum + i
  --[[loop]] end
  --[[back]] for word in ("some more words"):gmatch("%a+") do
    --[[at]] sum = sum + #word
  --[[loop]] end
  --[[at]] for key, value in pairs({ 1, 2, key = 3 }) do
    --[[at]] sum = sum + value + #tostring(key)
  --[[loop]] end
  --[[out]] return sum
end

local finalized = 0
local function tidy() --[[in]]
  --[[at]] finalized = finalized + 1
  --[[out]]
end
local function finalizer() --[[in]]
  --[[at]] tidy()
  --[[out]]
end
local has_ffi, ffi = pcall(require, "ffi")
local function garbage(n) --[[in]]
  --[[at]] local weak = setmetatable({}, { __mode = "k" })
  --[[at]] for i = 1, n do
    --[[at]] weak[{}] = { i }
    --[[at]] getmetatable(newproxy(true)).__gc = finalizer
    --[[at]] if has_ffi then ffi.gc(ffi.new("int[4]"), finalizer) end
  --[[loop]] end
  --[[at]] if n % 3 == 0 then collectgarbage("step", n) end
  --[[out]] return weak
end

local source = [[
local n, work = ... --<[main]>
local function inner(k) --<[in]>
  --<[at]> local r = work(k)
  --<[out]> return r
end
--<[at]> local r = inner(n)
--<[out]> return r
]]
source = SHADOW(source:gsub("<%[", "[["):gsub("%]>", "]]"), 10000)
local function loading(n) --[[in]]
  --[[at]] local chunk = loadstring(source, "=loaded")
  --[[at]] local result = chunk(n, arithmetic)
  --[[out]] return result
end

local calls, by_callback
if has_ffi then
  ffi.cdef("size_t strlen(const char *); int abs(int); void qsort(void *, size_t, size_t, int (*)(const void *, const void *));")
  local integers = ffi.typeof("const int *")
  local function compare(a, b) --[[in]]
    --[[at]] local x, y = ffi.cast(integers, a)[0], ffi.cast(integers, b)[0]
    --[[at]] local order = x < y and -1 or x > y and 1 or 0
    --[[out]] return order
  end
  -- A statically linked program has no symbols to look up.
  local found, C = pcall(function() return ffi.C.qsort and ffi.C.strlen and ffi.C.abs and ffi.C end)
  if found and C then
    local buffer = ffi.new("char[?]", 3000)
    ffi.fill(buffer, 2999, 97)
    local comparator = ffi.cast("int (*)(const void *, const void *)", compare)
    function calls(n) --[[in]]
      --[[at]] local x = 0
      --[[at]] for i = 1, n do
        --[[at]] x = x + tonumber(C.strlen(buffer)) + C.abs(-i)
      --[[loop]] end
      --[[out]] return x
    end
    local values = ffi.new("int[12]")
    function by_callback(n) --[[in]]
      --[[at]] for i = 0, 11 do values[i] = (i * 7919 + n) % 101 end
      --[[at]] C.qsort(values, 12, 4, comparator)
      --[[out]]
    end
    if jit then jit.off(by_callback) end   -- callbacks from C that was called by machine code are not allowed (ffi_semantics.html)
    if recording then pair("*", place(debug.getinfo(compare, "S"))) end
  end
end
local function ffi_calls(n) --[[in]]
  --[[at]] if calls then
    --[[at]] calls(20)
    --[[at]] by_callback(n)
  end
  --[[out]]
end
local function start_ffi_calls(A, B, n) --[[body]]
  --[[at]] ffi_calls(n)
  --[[out]]
end
local function ffi_in_coroutine(n) --[[in]]
  --[[at]] local B = table.remove(free)
  --[[at]] local thread = coroutine.create(start_ffi_calls)
  --[[at]] local good, text = coroutine.resume(thread, address_of(thread), B, n)
  --[[back]] assert(good, text)
  --[[at]] free[#free + 1] = B
  --[[out]]
end

local function round(n) --[[in]]
  --[[at]] arithmetic(500)
  --[[at]] inlined(200)
  --[[at]] tables(60)
  --[[at]] varargs(n % 100)
  --[[at]] many_varargs(60)
  --[[at]] strings(20)
  --[[at]] substitute(5)
  --[[at]] sorting(60)
  --[[at]] metamethods(n)
  --[[at]] many_metamethods(30)
  --[[at]] failing(8)
  --[[at]] safe(20)
  --[[at]] recursion(n % 13)
  --[[at]] fibonacci(n % 12)
  --[[at]] tail_calls(n % 50)
  --[[at]] tail_calls_c(20)
  --[[at]] coroutines(n)
  --[[at]] crossed()
  --[[at]] iterators(5)
  --[[at]] garbage(n % 20)
  --[[at]] loading(n % 30)
  --[[at]] ffi_calls(n)
  --[[at]] ffi_in_coroutine(n)
  --[[out]]
end

if recording then
  pair("*", place(debug.getinfo(finalizer, "S")))
  pair(place(debug.getinfo(finalizer, "S")), place(debug.getinfo(tidy, "S")))
  pair(place(debug.getinfo(1, "S")), place(debug.getinfo(round, "S")))
  pair("=[C]", place(debug.getinfo(1, "S")))
  debug.sethook(on_event, "cr")   -- of all coroutines
  for n = 1, 60 do round(n) end
  debug.sethook()
  recording = false
  local file = assert(io.open(arg[2], "w"))
  for line in pairs(seen) do file:write(line, "\n") end
  file:close()
  os.exit(0)
end
io.stdout:write("SHADOW ", tostring(M):sub(8), " ", stride, " ", debug.getinfo(finalizer).linedefined, " ", debug.getinfo(thrower).linedefined,
  "\nREADY\n")
io.stdout:flush()
local n = 0
while true do
  n = n % 1000 + 1
  --[[at]] round(n)
end
