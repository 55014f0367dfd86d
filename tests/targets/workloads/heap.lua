-- heap.lua SECONDS CYCLES: says READY, grows by 1 MB in each second of CPU time, and meanwhile collects so many times, which the collector
-- does not do of its own. Then prints the bytes in use when it began, and now, and how often it has collected.
-- At the end it does not allocate for a while, so that the last look sees what it prints, and it does not close the state.
local seconds, cycles = tonumber(arg[1]), tonumber(arg[2])
local clock, collect = os.clock, collectgarbage

local function count() return collect("count") * 1024 end

local function spin(from, length)
  while clock() - from < length do end
end

local collected = 0
local function cycle()
  collect()
  collect("stop")   -- after a collection some versions set the next one
  collected = collected + 1
end

local function grow(kept)
  local from, began, piece = clock(), collected, ("x"):rep(10000)
  while clock() - from < seconds do
    local passed = clock() - from
    while #kept < passed * 100 do kept[#kept + 1] = piece .. #kept end
    if collected - began < passed / seconds * cycles then cycle() end
  end
end

collect("stop")
cycle()
print("READY")
io.flush()
spin(clock(), 0.3)
local first, kept = count(), {}
grow(kept)
local last = count()
spin(clock(), 0.2)
print(("from %.0f to %.0f bytes, collected %d times"):format(first, last, collected))
os.exit(0)
