-- Says READY, and then writes until nobody reads what it writes: it waits in write() for good.
io.stdout:setvbuf("no")
local function inner(text) io.write(text) end
local function outer()
  local text = ("x"):rep(4000)
  while true do inner(text) end
end
print("READY")
outer()
