-- label_requests.lua SECONDS: a server without a network. Requests of six addresses, each of which is served by a function
-- of its own, so that a stack tells what its labels have to be. Prints the share of its own CPU time that each has taken.
-- "/f" has a request of its own inside, to "/sub".
local seconds = tonumber(arg[1])
local taken, all = {}, 0
local session            -- an upvalue, of each request
app = {}                 -- globals
for i = 1, 400 do _G["global" .. i] = i end
local ballast = {}       -- so that not all lies in a few pages
for i = 1, 20000 do ballast[i] = {tostring(i)} end

local function spin(least)
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= least
  return x
end

local served = {
  ["/a"] = function(request) local at_a = spin(0.001) return at_a end,
  ["/b"] = function(request) local at_b = spin(0.002) return at_b end,
  ["/c"] = function(request) local at_c = spin(0.001) return at_c end,
  ["/d"] = function(request) local at_d = coroutine.wrap(function() return spin(0.003) end)() return at_d end,
  ["/e"] = function(request) local _, at_e = pcall(spin, 0.002) return at_e end,
}

local handle

served["/f"] = function(request)
  local at_f = spin(0.001)
  return handle({uri = "/sub", id = request.id, head = {from = request.uri}}), at_f
end
served["/sub"] = function(request) local at_sub = spin(0.002) return at_sub end

function handle(req)
  local outer = session
  session = setmetatable({page = "page of " .. req.uri}, {__index = {user = "user of " .. req.uri}})
  app.current = session
  local result = served[req.uri](req)
  session, app.current = outer, outer
  return result, req
end

local uris = {"/a", "/b", "/c", "/d", "/e", "/f"}
io.write("READY\n") io.flush()
local last, n = os.clock() + seconds, 0
while os.clock() < last do
  n = n + 1
  local uri = uris[n * 7 % 6 + 1]
  local begin = os.clock()
  handle({uri = uri, id = n, head = {from = "outside"}, "first", uri})
  taken[uri] = (taken[uri] or 0) + os.clock() - begin
  all = all + os.clock() - begin
  if n % 50 == 0 then collectgarbage() assert(#ballast == 20000) end
end
for _, uri in ipairs(uris) do io.write(string.format("%s %.4f\n", uri, taken[uri] / all)) end
