-- The work of every outsider: three parts share the CPU time 50 : 30 : 20, by the program's own clock. After each slice of some
-- milliseconds, the part that lags behind most runs; the clock is read only once per slice, as system calls may attract stops.
-- outsiders.py reads from this file on which line each function begins. DIRECTORY is replaced by the folder for the file "ready".
local clock = os.clock
local words = ("the quick brown fox jumps over the lazy dog "):rep(4)

local function spin(rounds)
  local x = 0.5
  for i = 1, rounds do x = x * 1.0000001 + i % 3 end
  return x
end

local function replace(word)
  local x = 0.5
  for i = 1, 50 do x = x * 1.0000001 + #word % 3 end
  return x > 0 and word or nil
end

local function before(a, b)
  local x = 0.5
  for i = 1, 50 do x = x * 1.0000001 + i % 3 end
  return a + x * 0 < b
end

local function descend(depth)
  local x = depth == 0 and spin(4000) or descend(depth - 1)
  return x + 1
end

local function lua_part(rounds)
  local x = 0
  for _ = 1, rounds do x = x + spin(1000) end
  return x
end

local function callback_part(rounds)
  local length = 0
  for round = 1, rounds do
    local numbers = {}
    for i = 1, 30 do numbers[i] = i * 7919 % (100 + round % 10) end
    table.sort(numbers, before)
    length = length + #string.gsub(words, "%w+", replace)
  end
  return length
end

-- The last coroutines, more and more of them: soon most are in memory that did not exist when luaspy first looked.
local kept, oldest, most = {}, 1, 100

local function coroutine_part(rounds)
  local x = 0
  for round = 1, rounds do
    local resume = coroutine.wrap(descend)
    x = x + resume(20)
    kept[oldest] = resume
    oldest = oldest % most + 1
    if round % 2 == 0 and most < 20000 then most = most + 1 end
  end
  return x
end

local goals, used, rounds = { 50, 30, 20 }, { 0, 0, 0 }, { 1, 1, 1 }
local dice = 1
local costs -- seconds per round of each part, if counting replaces the clock

local function slice(part)
  if part == 1 then lua_part(rounds[1]) elseif part == 2 then callback_part(rounds[2]) else coroutine_part(rounds[3]) end
end

-- Runs slices for some seconds of CPU time.
local function work(seconds)
  local now = clock()
  local finish = now + seconds
  while now < finish do
    local part = 1
    for other = 2, 3 do
      if used[other] * goals[part] < used[part] * goals[other] then part = other end
    end
    slice(part)
    local before_slice = now
    now = costs and now + rounds[part] * costs[part] or clock()
    local took = now - before_slice
    used[part] = used[part] + took
    -- The next slice of this part takes 3 to 10 ms, so that it does not synchronise with a sampler.
    dice = dice * 16807 % 2147483647
    local factor = (0.003 + dice % 1000 * 0.000007) / (took > 0.0001 and took or 0.0001)
    rounds[part] = math.ceil(rounds[part] * (factor > 4 and 4 or factor < 0.25 and 0.25 or factor))
  end
end

local function ready()
  local files, machine = rawget(_G, "io"), rawget(_G, "jit") -- redis does not allow other accesses to missing globals
  local stat = files and files.open and files.open("/proc/self/stat")
  local file = stat and files.open("DIRECTORY/ready", "w")
  if not file then return end
  file:write(stat:read("*l"):match("^%d+"), "\n", machine and machine.version or _VERSION, "\n")
  stat:close()
  file:close()
end

-- From here on rounds are counted: if several threads take turns or run at the same time, the clock shows the time of all of them.
local function count()
  work(0.3)
  local measured = {}
  for part = 1, 3 do
    rounds[part] = rounds[part] * 10
    local start = clock()
    slice(part)
    measured[part] = (clock() - start) / rounds[part]
  end
  used, costs = { 0, 0, 0 }, measured
end

local function run(seconds)
  work(0.3)
  ready()
  work(seconds)
end
