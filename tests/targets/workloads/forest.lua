-- forest.lua KIND: makes coroutines of all kinds, prints what Lua itself reports about each of them, and waits.
--   kinds      one or a few of every kind; waits within two coroutines that have resumed each other
--   forest N   N coroutines that wait at ten places, equally many at each; then "wait"s, or "work"s: they are resumed, others come and go; a fourth
--              word is a number of MB that are added to the heap
--   sweep      garbage, and a collection that advances by one step for every line that is read
local kind, count, way = arg[1], tonumber(arg[2] or 0), arg[3]
local yield, create, unpack = coroutine.yield, coroutine.create, unpack or table.unpack
local load = loadstring or load
local all = {}
local function say(...) io.write(...) io.write("\n") end
local function ready() say("READY") io.flush() end
local function tell(label, co)
  say("COROUTINE ", label, " ", coroutine.status(co))
  say(debug.traceback(co))
end
local function keep(label, co, ...) all[#all + 1] = { label, co } return coroutine.resume(co, ...) end

local function leaf(n) local x = yield(n) return x end
local function middle(n) local x = leaf(n) return x end
local function outer(n) local x = middle(n) return x end
local function down(n) if n == 0 then yield() else down(n - 1) end return n end
local function make()
  keep("suspended", create(leaf), 1)
  keep("suspended", create(middle), 2)
  for i = 1, 3 do keep("suspended", create(outer), i) end
  keep("suspended", create(function(...) local a = ... leaf(a) return select("#", ...) end), 1, 2, 3)
  keep("suspended", create(function() return leaf(1) end))
  keep("suspended", create(function() local ok = pcall(outer, 3) return ok end))   -- 5.1 cannot yield there: it fails
  keep("suspended", create(function() local ok = pcall(yield, 3) return ok end))
  keep("suspended", create(function() local ok = pcall(pcall, yield, 3) return ok end))
  local object = setmetatable({}, { __index = function(t, k) local v = leaf(k) return v end, __lt = function() local x = leaf(2) return x end,
    __concat = function() return (leaf(3)) end, __call = function(self, n) local x = leaf(n) return x end })
  keep("suspended", create(function() return object.missing end))
  keep("suspended", create(function() return object < object end))
  keep("suspended", create(function() return object .. "x" end))
  keep("suspended", create(function() local x = object(1) return x end))
  keep("suspended", create(function() for i in function() local x = leaf(1) return x end do return i end end))
  keep("suspended", create(down), 12)
  keep("suspended", create(down), 3000)
  local wrapped = coroutine.wrap(function() all[#all + 1] = { "suspended", (coroutine.running()) } outer(1) end)
  wrapped()
  local generator = coroutine.wrap(function() all[#all + 1] = { "suspended", (coroutine.running()) } while true do leaf(1) end end)
  keep("suspended", create(function() generator() generator() yield() end))
  keep("suspended", create(assert(load(string.dump(load("local yield = ... yield() return 1"), true)))), yield)
  all[#all + 1] = { "not started", create(outer) }
  local takes_c, of_c = pcall(create, print)   -- 5.1 requires Lua functions
  if takes_c then
    all[#all + 1] = { "not started", of_c }
    keep("suspended", create(yield), 7)
    keep("failed", create(error), "oops")
    end
  keep("dead", create(function() return 1, 2, 3 end))
  keep("dead", create(function() end))
  keep("failed", create(function() local nothing return nothing.field end))
  keep("failed", create(function() error("on purpose") end))
  keep("failed", create(function() yield() end)) coroutine.resume(all[#all][2]) all[#all][1] = "dead"
  if coroutine.close then
    keep("suspended", create(outer), 1) coroutine.close(all[#all][2]) all[#all][1] = "dead"
    all[#all + 1] = { "not started", create(outer) } coroutine.close(all[#all][2]) all[#all][1] = "dead"
  end
end

local function tell_all() for _, one in ipairs(all) do tell(one[1], one[2]) end end
local function rest() ready() io.read() end

if kind == "kinds" or kind == "generational" then
  if _VERSION >= "Lua 5.4" then collectgarbage(kind == "kinds" and "incremental" or kind) end
  make()
  if kind == "generational" then collectgarbage("step") make() collectgarbage("step") end
  collectgarbage() collectgarbage()   -- 5.1 creates a coroutine before it detects the error
  -- Two that have resumed each other, and the inner one, which runs.
  local inner = create(function() tell_all() rest() end)
  local second = create(function() all[#all + 1] = { "running", inner } local ok = coroutine.resume(inner) return ok end)
  local first = create(function() local ok = coroutine.resume(second) return ok end)
  all[#all + 1] = { "normal", first }
  all[#all + 1] = { "normal", second }
  assert(coroutine.resume(first))
elseif kind == "forest" then
  local places = {}
  for i = 1, 10 do
    places[i] = assert(load("local yield = ...\nlocal function place" .. i .. "(n)\n while true do yield(n) end\nend\nreturn function(n)" ..
      ("\n"):rep(i) .. " place" .. i .. "(n)\nend", "@place" .. i .. ".lua"))(yield)
  end
  local forest, heap = {}, {}
  local function grow(mb) while collectgarbage("count") < mb * 1024 do for i = 1, 1000 do heap[#heap + 1] = { i, "text " .. #heap, {} } end end end
  local mb = tonumber(arg[4] or 0)
  grow(mb / 2)
  for i = 1, count do
    if mb > 0 and i % 16 == 0 then heap[#heap + 1] = { i, {} } end
    forest[i] = create(places[i % 10 + 1])
    coroutine.resume(forest[i], { i, "leaf " .. i })
  end
  grow(mb)
  ready()
  if way == "wait" then io.read() end
  local i, other = 0, 0
  while true do
    i = i % count + 1
    coroutine.resume(forest[i], { i })
    if i % 50 == 0 then
      local short = create(function() yield({}) end)
      coroutine.resume(short)
    end
  end
elseif kind == "sweep" then
  if _VERSION >= "Lua 5.4" then collectgarbage("incremental") end
  collectgarbage() collectgarbage("stop")
  make()
  for i = 1, 2000 do coroutine.resume(create(leaf), { {} }) all[i % 100 + 1000] = create(leaf) end
  for i = 1000, 1100 do all[i] = nil end
  for _, one in ipairs(all) do say("COROUTINE ", one[1], " ", coroutine.status(one[2])) end
  ready()
  local step = tonumber(arg[2])
  while io.read() do
    collectgarbage("step", step)
    ready()
  end
end
