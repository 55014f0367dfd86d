-- Limits how many requests a client may make in a minute. It has a leak: its timer never finds anything to delete.
-- docs/heap.md finds it with luaspy.

local limiter = {}

local limit, window = 600, 60 -- requests, s
local clients = {} -- by address

local function forget_old()
  local now = ngx.now()
  for i, client in ipairs(clients) do
    if now - client.started > window then table.remove(clients, i) end
  end
end

local function client_of(address)
  local client = clients[address]
  if not client then
    client = { address = address, started = ngx.now(), requests = 0, agents = {} }
    clients[address] = client
  end
  return client
end

function limiter.check()
  local client = client_of(ngx.var.http_x_forwarded_for or ngx.var.remote_addr)
  local now = ngx.now()
  if now - client.started > window then client.started, client.requests = now, 0 end
  client.requests = client.requests + 1
  client.agents[ngx.var.http_user_agent or "none"] = true
  if client.requests > limit then return ngx.exit(429) end
end

function limiter.start() assert(ngx.timer.every(window, forget_old)) end

return limiter
