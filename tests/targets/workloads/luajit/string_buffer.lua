-- string_buffer.lua COLLECTIONS main|coroutine: makes a string of 27 KB, in a coroutine that ends if that is said,
-- and lets the collector go round so often. Says READY, and waits.
local collections, by = ...
local parts = {}
for i = 1, 600 do parts[i] = ("part %d of a string of some length, %d"):format(i, i) end
local function make() return #table.concat(parts) end
if by == "coroutine" then
  for _ = 1, 200 do coroutine.wrap(make)() end
else
  make()
end
for _ = 1, tonumber(collections) do collectgarbage() end
io.write("READY\n")
io.flush()
io.read()
