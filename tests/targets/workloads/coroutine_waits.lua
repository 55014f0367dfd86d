-- coroutine_waits.lua SECONDS [N]: coroutines that wait at four places, and what the program knows of that itself. N of
-- them, 120 by default, wait for a query and are resumed all the time; half of them end after half of the time. 45 wait
-- for a client that never comes. Of 60, 45 wait for a lock and 15 for a file, never the same for long. Prints how
-- many waited where, before and after that half, and for how long (of os.clock).
local seconds, many = tonumber(arg[1]), tonumber(arg[2] or 120)
local yield = coroutine.yield

local ends = false
local function wait_query()
  local turns = 0
  while not ends do
    turns = turns + 1
    yield()
  end
end

local function wait_client()
  yield()
end
local function client()
  wait_client()
end

local function wait_lock() yield() end
local function wait_file() yield() end
local function worker()
  while true do
    wait_lock()
    wait_lock()
    wait_lock()
    wait_file()
  end
end

local function start(count, body)
  local all = {}
  for i = 1, count do
    all[i] = coroutine.create(body)
    assert(coroutine.resume(all[i]))
  end
  return all
end

local queries, clients, workers = start(many, wait_query), start(45, client), start(60, worker)
-- One in four is at its fourth wait.
for i = 1, 60 do
  for _ = 1, i % 4 do coroutine.resume(workers[i]) end
end
-- All that are due at once: each one of four follows the one before it.
local function turn()
  for i = 1, #queries do assert(coroutine.resume(queries[i])) end
  for i = 1, 60 do assert(coroutine.resume(workers[i])) end
end

local function run(least)
  local begin, x = os.clock(), 0
  repeat
    turn()
    for i = 1, 20000 do x = x + i % 7 end
  until os.clock() - begin >= least
  return os.clock() - begin
end

io.write("READY\n") io.flush()
local before = run(seconds / 2)
ends = true
for i = #queries, many / 2 + 1, -1 do
  assert(coroutine.resume(queries[i]))
  assert(coroutine.status(queries[i]) == "dead")
  queries[i] = nil
end
ends = false
local after = run(seconds / 2)
print(string.format("query %d %d client 45 lock 45 file 15 seconds %.3f %.3f", many, #queries, before, after))
