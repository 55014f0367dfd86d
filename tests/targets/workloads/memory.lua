-- Keeps tables, strings and one big array, and frees others of all sizes. With LuaJIT it compiles traces, too. Prints
-- the bytes that the collector counts when nothing is freed yet, and afterwards; whether there is machine code; and
-- READY. Then it waits.
io.stdout:setvbuf("line")
collectgarbage("stop")
local kept, freed = {}, {}
for i = 1, 20000 do
  kept[i] = { number = i, name = "kept " .. i }
  freed[i] = { ("x"):rep(i % 700), i, i, i }
end
local big, gone = {}, {}
for i = 1, 200000 do big[i] = i end
for i = 1, 100000 do gone[i] = i end
local sum = 0
for turn = 1, 100 do
  for i = 1, #big, turn do sum = sum + big[i] end
end
local before = collectgarbage("count") * 1024
freed, gone = nil, nil
collectgarbage("restart")
collectgarbage()
collectgarbage()
collectgarbage("stop")
local compiled = jit ~= nil and require("jit.util").traceinfo(1) ~= nil
io.write(string.format("%.0f\n%.0f\n%s\n", before, collectgarbage("count") * 1024, tostring(compiled)), "READY\n")
io.read("*a")
