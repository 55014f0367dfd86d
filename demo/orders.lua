-- A program with something to find: it parses orders, prices them, and writes a report. Which part is slow, and why?

local function parse(text)
  local orders = {}
  for name, count, price in text:gmatch("(%w+) (%d+) (%d+%.%d+)") do
    orders[#orders + 1] = { name = name, count = tonumber(count), price = tonumber(price) }
  end
  return orders
end

local function discount(order)
  -- Tries every step instead of calculating the right one: this is what the profile will show.
  local best = 0
  for step = 1, 400 do
    if order.count * order.price > step * 25 then best = step * 0.05 end
  end
  return best
end

local function total(orders)
  local sum = 0
  for _, order in ipairs(orders) do sum = sum + order.count * order.price * (1 - discount(order) / 100) end
  return sum
end

local function report(orders)
  table.sort(orders, function(a, b) return a.price > b.price end)
  local lines = {}
  for i, order in ipairs(orders) do lines[i] = ("%-12s %5d %8.2f"):format(order.name, order.count, order.price) end
  return table.concat(lines, "\n")
end

local function incoming(seed)
  local words = {}
  for i = 1, 300 do words[i] = ("item%d %d %d.%02d"):format(i, (i * seed) % 50 + 1, (i * 7 + seed) % 90 + 1, i % 100) end
  return table.concat(words, "\n")
end

local seconds = tonumber(arg and arg[1]) or 5
local started, rounds = os.clock(), 0
local producer = coroutine.wrap(function()
  for seed = 1, math.huge do coroutine.yield(incoming(seed)) end
end)
while os.clock() - started < seconds do
  local orders = parse(producer())
  total(orders)
  report(orders)
  rounds = rounds + 1
end
print(("%d rounds of 300 orders in %d s of CPU time"):format(rounds, seconds))
