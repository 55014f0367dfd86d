-- Functions that are loaded, called and thrown away, as templates and serialisers do it: 3,000 chunks, each under its
-- own name, "=tpl0001" and so on. All are of the same length, so that one takes the memory of another one that was
-- collected. The functions in a chunk have its number in their names.
-- arg[1]: "functions", or "coroutines": each chunk runs in a coroutine of its own. arg[2]: iterations of a call.
local load = loadstring or load
local kind, size = arg[1] or "functions", tonumber(arg[2]) or 20000
local text = [[
local function work%04d(size)
  local sum = 0
  for i = 1, size do sum = sum + i %% 7 end
  return sum
end
local sum = work%04d(...)
return sum]]
local function call(chunk, argument)
  if kind == "functions" then return chunk(argument) end
  local results = {coroutine.resume(coroutine.create(chunk), argument)}
  return results[2]
end
print("READY")
io.stdout:flush()
local total, number = 0, 0
while true do
  number = number % 3000 + 1
  local chunk = load(text:format(number, number), ("=tpl%04d"):format(number))
  local result = call(chunk, size)
  total = total + result
end
