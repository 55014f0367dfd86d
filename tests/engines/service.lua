-- Works until it is ended: functions, and lines of one function, with shares of the time that differ.
local function add(n)
  local sum = 0
  for i = 1, n do
    sum = sum + i % 7
  end
  for i = 1, 2 * n do
    sum = sum + i % 5
  end
  return sum
end

local function text(n)
  local parts = {}
  for i = 1, n do
    parts[i] = tostring(i) .. "x"
  end
  return table.concat(parts)
end

local loop = coroutine.wrap(function()
  while true do
    add(10000)
    coroutine.yield()
  end
end)

io.write("READY\n")
io.flush()
while true do
  loop()
  text(1500)
  add(2000)
end
