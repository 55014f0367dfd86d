-- dnsdist --supervised -C host-dnsdist.lua: the thread that does the housekeeping is busy.
local outer = require("work")

setLocal("127.0.0.1:0")

function maintenance()
  outer()
  io.stdout:write("READY\n")
  io.stdout:flush()
  while true do outer() end
end
