-- dnsdist --supervised -C host-dnsdist.lua: its maintenance thread is busy.
local outer = require("work")

local pid = io.open("/proc/self/stat"):read("*n")
setLocal(("127.%d.%d.%d:5300"):format(pid / 65536, pid / 256 % 256, pid % 256)) -- an address that nothing else has
setSecurityPollSuffix("")

function maintenance()
  outer()
  io.stdout:write("READY\n")
  io.stdout:flush()
  while true do outer() end
end
