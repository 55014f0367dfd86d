-- Objects that tests count: what is here, and how much of it, is in tests/live/heap_output_test.cpp and tests/readers/heapsnapshot/check.py.
Account = {} ; Account.__index = Account
local function account(name) return setmetatable({name = name, log = {}}, Account) end
package.loaded.cachemod = {entries = {}}
for i = 1, 3000 do package.loaded.cachemod.entries[i] = {id = i, body = ("x"):rep(50) .. i, when = i * 0.5} end
accounts = {}
for i = 1, 100 do accounts["a" .. i] = account("n" .. i) end
list = nil
for i = 1, 500 do list = {next = list, value = i} end
local queue = {first = 1}
function push(x) queue[#queue + 1] = x end
push("a"); push({})
sleepers = {}
for i = 1, 20 do
  local co = coroutine.create(function(a, b) local mine = {a, b}; coroutine.yield(mine) end)
  coroutine.resume(co, i, {})
  sleepers[i] = co
end
weak_values = setmetatable({}, {__mode = "v"})
weak_values[1] = accounts.a1
weak_keys = setmetatable({}, {__mode = "k"})
for i = 1, 10 do weak_keys[accounts["a" .. i]] = {secret = i} end
deep = {}
local inner = deep
for i = 1, 300 do
  inner["d" .. i] = {}
  inner = inner["d" .. i]
end
mixed = {[1.5] = {}, [true] = {}, [accounts.a1] = {}, [-3] = {}, [2^40] = {}, ["strange \"key\"\n\255"] = {}}
collectgarbage() collectgarbage()
collectgarbage("stop")
for i = 1, 50 do garbage = {garbage_number = i} end
garbage = nil
io.write("READY\n") io.flush()
if io.read() then
  later = {}
  for i = 1, 150 do later[i] = {fresh = i} end
  io.write("READY\n") io.flush()
  io.read()
end
