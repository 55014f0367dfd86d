-- work.lua MODULE COUNTERS KIND MICROSECONDS THREADS: forever computes for MICROSECONDS on average, then calls.
-- KIND is a call of bias.c, `socket` (send and recv in turns), or `os.clock`. The lengths vary from half to one and a
-- half of the average, so that they never synchronise with a sampler. READY is printed when everything is warm.
local module, counters, kind, microseconds, threads = (table.unpack or unpack)(arg, 1, 5)
microseconds, threads = tonumber(microseconds), tonumber(threads)
package.cpath = module
local bias = require "bias"
bias.open(counters)

local numbers = {nothing = 0, clock = 1, write = 2, futex = 3, send = 4, recv = 5}
local ffi
if jit then
  ffi = require "ffi"
  ffi.cdef "void bias_timed(int);"
end

local source = [[
local bias, timed, kind, rounds_each, numbers = ...
local clock, cycles, timed_by_lua = os.clock, bias.cycles, bias.timed_by_lua

local function compute(rounds)
  local x = 0
  for i = 1, rounds do x = (x * 3 + i) % 1000003 end
  return x
end

local seed = 1
local function length()
  seed = (seed * 16807) % 2147483647
  return rounds_each * (0.5 + seed / 2147483647)
end

local run = {}
function run.socket(rounds)
  for i = 1, rounds do
    compute(length())
    timed(4)
    compute(length())
    timed(5)
  end
end
run["os.clock"] = function(rounds)
  for i = 1, rounds do
    compute(length())
    local before = cycles()
    clock()
    timed_by_lua(6, before)
    if i % 16 == 0 then
      before = cycles()
      timed_by_lua(7, before)
    end
  end
end
return compute, length, run[kind] or function(rounds)
  local number = numbers[kind]
  for i = 1, rounds do
    compute(length())
    timed(number)
  end
end
]]

local load = loadstring or load
local timed = ffi and ffi.load(module).bias_timed or bias.timed
local compute = load(source)(bias, timed, kind, 1, numbers)

-- How many rounds of compute() take 1 µs: the fastest of some measurements.
local rounds, best = 200000, math.huge
for i = 1, 20 do
  local before = os.clock()
  compute(rounds)
  best = math.min(best, os.clock() - before)
end
local each = math.max(1, microseconds * rounds / (best * 1e6))

local length, run
compute, length, run = load(source)(bias, timed, kind, each, numbers)

for i = 1, 999 do timed(0) end
for i = 1, 300 do bias.timed_by_lua(7, bias.cycles()) end
run(300)
if threads > 1 then
  local file = assert(io.open(arg[0]))
  local text = file:read("*a")
  file:close()
  for i = 2, threads do
    local words = "bias_thread = true arg = {[0] = %q, %q, %q, %q, '%d', '1'}\n"
    bias.start(words:format(arg[0], module, counters, kind, microseconds) .. text)
  end
end
if not bias_thread then
  io.write("READY\n")
  io.flush()
end
while true do run(100) end
