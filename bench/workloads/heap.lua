-- heap.lua OBJECTS: makes so many tables and strings, says READY, and changes them until it is killed.
local count = tonumber(...) / 2
local all = {}
for i = 1, count do all[i] = {id = i, name = "name of " .. i} end
print("READY") io.flush()
local round = 0
while true do
  round = round + 1
  all[round % count + 1].id = round
end
