-- For nginx: requests that take a millisecond, and kinds that take 300: one works in pieces, others mostly wait.
local slow_nginx = {}

local function spin(least)
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= least
  return x
end

local served = {
  ["/fast"] = function() local x = spin(0.001) return x end,
  ["/works"] = function() local x = 0 for _ = 1, 6 do x = x + spin(0.010) ngx.sleep(0.040) end return x end,
  ["/waits"] = function() local x = spin(0.010) ngx.sleep(0.300) x = x + spin(0.010) return x end,
  ["/thread"] = function()
    local x = spin(0.005)
    local thread = ngx.thread.spawn(function() ngx.sleep(0.300) return 1 end)
    ngx.thread.wait(thread)
    return x + spin(0.005)
  end,
  ["/exit"] = function() local x = spin(0.0005) ngx.exit(403) return x end,
}

function slow_nginx.serve()
  local result = served[ngx.var.uri]()
  ngx.say(result)
end

function slow_nginx.start()
  io.stdout:write("READY\n")
  io.stdout:flush()
end

return slow_nginx
