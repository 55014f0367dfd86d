-- Computes until it is ended, or has used as much CPU time as its second argument says (s): a thread under a
-- real-time policy must not stay. Every few ms it writes how far it has come into the file of its first argument.
local progress, most = assert(io.open(arg[1], "w")), tonumber(arg[2])
progress:setvbuf("no")

local function compute(n)
  local x = n
  for i = 1, 10000 do x = (x * 1103515245 + 12345 + i) % 2147483648 end
  local made = {x}   -- for `alloc`
  return made[1]
end

print("READY")
io.stdout:flush()
local rounds, x = 0, 1
repeat
  for _ = 1, 10 do x = compute(x) end
  rounds = rounds + 1
  progress:seek("set", 0)
  progress:write(string.format("%12d", rounds))
until os.clock() > most
