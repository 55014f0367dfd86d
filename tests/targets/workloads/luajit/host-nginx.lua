-- nginx runs each timer and request, and each coroutine that they make, as a coroutine that it resumes itself.
local outer = require("work")
local nginx = {}
local ready = false

-- A timer that expires again immediately: a coroutine works.
local function in_coroutine()
  while true do
    outer()
    coroutine.yield()
  end
end

local function on_timer()
  local work = coroutine.wrap(in_coroutine)
  for _ = 1, 10 do work() end
  if not ready then
    ready = true
    io.stdout:write("READY\n")
    io.stdout:flush()
  end
end

function nginx.start() assert(ngx.timer.every(0.001, on_timer)) end

-- A request for /?rounds=N works that many times, and lets others work in between.
function nginx.serve()
  for _ = 1, tonumber(ngx.var.arg_rounds) do
    outer()
    ngx.sleep(0)
  end
  ngx.say("done")
end

return nginx
