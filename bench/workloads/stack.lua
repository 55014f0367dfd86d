-- stack.lua LEVELS CALLS [thrown]: works forever, below LEVELS callbacks of C functions (some native frames each) and
-- CALLS calls of Lua functions. With `thrown`, the function that works is loaded, called ten times and thrown away.
-- Prints "READY ADDRESS", the address of its counter (counter.c). tools.lua turns on and off what the bench asks for
-- there.
local counter = require(jit and "counter_ffi" or "counter")
local tools = require("tools")
local levels, calls = tonumber(arg[1]), tonumber(arg[2])

local function mix(a, b) return (a * 31 + b) % 1009 end

local function text_of(row, round)
  local text = table.concat(row, ",")
  return text:sub(1, 8) .. round % 100, text:byte(-1)
end

-- Calls, table writes, allocation and strings: about 10 µs.
local text_of_work = [[
local mix, text_of = ...
return function(round)
  local row = {}
  for i = 1, 24 do row[i] = mix(i, round) end
  local text, last = text_of(row, round)
  return { text = text, last = last, sum = row[1] + row[24] }
end]]
local thrown = arg[3] == "thrown"
local load = loadstring or load
local work = load(text_of_work, "=work")(mix, text_of)

local function innermost()
  local done = {}
  local doing, round = 0, 0
  while true do
    round = round + 1
    if thrown and round % 10 == 0 then
      work = load(text_of_work, ("=work%04d"):format(round / 10 % 3000))(mix, text_of)
    end
    done[round % 16 + 1] = work(round)
    local wanted = counter.step()
    if wanted ~= doing then
      tools.switch(doing, wanted)
      counter.doing(wanted)
      doing = wanted
    end
  end
end

local function call(left)
  if left == 0 then return innermost() or 0 end
  return call(left - 1) + 1   -- not a tail call
end

local function through_c()
  if levels == 0 then return call(calls) end
  levels = levels - 1
  if levels % 2 == 0 then string.gsub("x", "x", through_c) else table.sort({ 2, 1 }, through_c) end
end

io.stdout:write(string.format("READY %.0f\n", counter.address))
io.stdout:flush()
through_c()
