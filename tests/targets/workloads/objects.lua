-- A heap whose objects are known. What it prints before READY is what it has made, one line a class:
-- "COUNT TYPE CLASS". `wait`: then it waits; `work`: it makes and drops objects until it is killed.
local mode = ...
local made = {}
local function say(count, type, class) print(count .. " " .. type .. " " .. class) end

-- Tables by form, with elements, as a class, and empty ones.
store = {records = {}}
for i = 1, 300 do store.records[i] = {id = i, body = "body " .. i, when = i * 2} end
say(300, "table", "{body, id, when}")
store.lists = {}
for i = 1, 40 do store.lists[i] = {i, i, i, label = "list"} end
say(40, "table", "{[1…], label}")
Account = {} Account.__index = Account
function Account.new(n) return setmetatable({balance = n}, Account) end
store.accounts = {}
for i = 1, 50 do store.accounts[i] = Account.new(i) end
say(50, "table", "Account")
Named = setmetatable({}, {__name = "my.Type"})
say(1, "table", "my.Type")

-- Functions and what they hold, told apart by where they are defined.
local function counter(n) local held = {count = n} return function() held.count = held.count + 1 return held end end
store.counters = {}
for i = 1, 20 do store.counters[i] = counter(i) end
say(20, "table", "{count}")

-- Coroutines: each holds a table in a local.
local function wait_with(n) local session = {session = n} coroutine.yield(session) return session end
store.coroutines = {}
for i = 1, 10 do
  store.coroutines[i] = coroutine.create(wait_with)
  coroutine.resume(store.coroutines[i], i)
end
say(10, "table", "{session}")

-- Weak tables: what they alone refer to is dead after a collection; an ephemeron's value is held by
-- its key.
local weak_values = setmetatable({}, {__mode = "v"})
store.weak_values = weak_values
for i = 1, 30 do weak_values[i] = {gone = i} end
store.keys, store.by_key = {}, setmetatable({}, {__mode = "k"})
for i = 1, 15 do
  store.keys[i] = {key = i}
  store.by_key[store.keys[i]] = {of_key = i}
end
say(15, "table", "{key}")
say(15, "table", "{of_key}")
for i = 1, 25 do store.by_key[{lost_key = i}] = {lost = i} end

-- A chain: the first one holds all others.
local chain
for i = 1, 100 do chain = {next_link = chain, number = i} end
store.chain = chain
say(99, "table", "{next_link, number}")

-- A metatable of strings, and one long string.
store.text = string.rep("long text ", 1000)
do
  local upvalue_only = {only = mode}
  function store.reader() return upvalue_only end
end
say(1, "table", "{only}")

collectgarbage() collectgarbage()
print("READY") io.flush()
if mode == "wait" then io.read() return end
local junk = {}
local n = 0
while true do
  n = n + 1
  junk[n % 500 + 1] = {x = n, y = {n}, z = tostring(n), f = function() return n end}
  if n % 700 == 0 then junk = {} end
  if n % 50 == 0 then coroutine.wrap(function() coroutine.yield({n}) end)() end
  if n % 90 == 0 then setmetatable({n}, {__gc = function() end}) end
end
