-- sidetrace.lua: work keeps more values than there are registers, and takes another branch every third time: a side trace that spills.
local numbers = {}
for i = 1, 100 do numbers[i] = i * 1.5 end

local function usual(a, b) return numbers[a % 100 + 1] + b end
local function rare(a, b)
  local x = numbers[a % 100 + 1] * b
  return x % 1000 + numbers[a % 50 + 1]
end

local function work(n)
  local a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8
  local k, l, m, o, p, q, r, s = 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5
  for i = 1, n do
    if i % 3 == 0 then a = rare(i, b) else b = usual(i, a) % 1000 end
    c, d, e, f, g, h = d + a, e + b, f - c, g + d, h - e, c
    k, l, m, o, p, q, r, s = l + a, m - k, o + l, p - m, q + o, r - p, s + q, k * 0.5
    if i % 100 == 0 then c, d, e, f, g, h, k, l, m, o, p, q, r, s = 1, 2, 3, 4, 5, 6, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5 end
  end
  return a + b + c + d + e + f + g + h + k + l + m + o + p + q + r + s
end

work(10000)
io.stdout:write("READY\n")
io.stdout:flush()
while true do work(100000) end
