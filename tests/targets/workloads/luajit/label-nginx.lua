-- For nginx: each address is served by a function of its own, so that a stack tells what the request has to be.
local label_nginx = {}

local function spin(least)
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= least
  return x
end

-- Waits for the answer to a request to this server itself.
local function ask(uri)
  local socket = ngx.socket.tcp()
  assert(socket:connect("unix:socket"))
  assert(socket:send("GET " .. uri .. " HTTP/1.0\r\n\r\n"))
  local answer = socket:receive("*a")
  socket:close()
  return answer
end

local served = {
  ["/a"] = function() local x = spin(0.001) return x end,
  ["/b"] = function() local x = spin(0.003) return x end,
  ["/sleep"] = function() local x = spin(0.001) ngx.sleep(0.001) x = x + spin(0.001) return x end,
  ["/main"] = function() local x = spin(0.001) ngx.location.capture("/sub?from=main") x = x + spin(0.001) return x end,
  ["/sub"] = function() local x = spin(0.002) return x end,
  ["/thread"] = function() local x = ngx.thread.wait(ngx.thread.spawn(function() local y = spin(0.002) return y end)) return x end,
  ["/socket"] = function() local x = spin(0.001) ask("/asked") x = x + spin(0.001) return x end,
  ["/asked"] = function() local x = spin(0.001) return x end,
  ["/coroutine"] = function() local x = coroutine.wrap(function() local y = spin(0.002) return y end)() return x end,
  ["(no request)"] = function() local x = spin(0.001) return x end,
}

function label_nginx.serve()
  local result = served[ngx.var.uri]()
  ngx.say(result)
end

function label_nginx.start()
  ngx.timer.every(0.01, function() local x = served["(no request)"]() return x end)
  io.stdout:write("READY\n")
  io.stdout:flush()
end

return label_nginx
