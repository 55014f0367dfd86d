-- A heap for pages: names that would have an effect as markup, deep chains, much that is small. What is here, and how much of it, is in
-- tests/readers/flamegraph/check_heap.py. After a line of input it has more accounts.
Account = {} Account.__index = Account
accounts = {}
local function open_accounts(first, last)
  for i = first, last do accounts[i] = setmetatable({name = "n" .. i, log = {i, i + 1}}, Account) end
end
open_accounts(1, 3000)
package.loaded.cache = {entries = {}}
for i = 1, 3000 do package.loaded.cache.entries[i] = {id = i, body = ("x"):rep(50) .. i, when = i * 0.5} end

-- Each holds enough to have a box of its own, and few are of one class, so that each has its name.
hostile = {}
local function payload(n) return {["payload" .. n % 2] = {n, ("p"):rep(20000) .. n, ("q"):rep(20000) .. n}} end
for i, name in ipairs {"<img src=x onerror=\"window.owned=1\">", "</script><script>window.owned=1</script>", "<!--<script ", "\226\128\174gpj.exe", "\226\128\168\226\128\169",
  "\255\254", "${window.owned=1}", "&lt;b&gt;", "__proto__", "constructor", "toString", "\1\2\27[31m", "line\nbreak", ("long"):rep(25000)} do
  hostile[name] = payload(i)
end
hostile_class = setmetatable(payload(100), {__name = "</script><b>class</b>"})

list = nil
for i = 1, 100000 do list = {next = list, value = i} end
-- Two classes by turns.
turns = nil
for i = 1, 12000 do turns = {left = {right = turns}} end
-- Thousands of tables, each with fields and in a field of its own.
small = {}
for i = 1, 5000 do small["s" .. i] = {["f" .. i] = i} end

-- LuaJIT can make another state.
if jit then
  local ffi = require("ffi")
  ffi.cdef [[typedef struct lua_State lua_State; lua_State *luaL_newstate(void); int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int);]]
  other = ffi.C.luaL_newstate()
  assert(ffi.C.luaL_loadstring(other, "elsewhere = {} for i = 1, 2000 do elsewhere[i] = {there = i} end") == 0)
  assert(ffi.C.lua_pcall(other, 0, 0, 0) == 0)
end

collectgarbage() collectgarbage()
print("READY") io.flush()
io.read()
open_accounts(3001, 4000)
for i = 1, 1000 do package.loaded.cache.entries[i] = nil end
collectgarbage() collectgarbage()
print("READY") io.flush()
io.read()
