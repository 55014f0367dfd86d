-- Locals of one frame that are always in step, whenever it is looked at: `up` and `down` are 100 together, or one of them is ahead by one; `again`
-- is `up`, or behind it by one, and so is what the table `progress` has, which machine code writes in every round. In and out of traces all the time:
-- what the loop calls now and then is not compiled. That is nothing of the kernel's: at the end of a system call a thread gives way to the one that
-- looks at it, and would always be found there.
local gethook, dump = debug.gethook, string.dump
local progress = {at = 0}
local function nothing() end

local function step(up, down)
  local sum = up + down
  local more, less = up + 1, down - 1
  local check = more + less
  return more, less, sum + check
end

local function steps(rounds)
  local up, down, again = 0, 100, 0
  progress.at = 0
  for round = 1, rounds do
    local sum
    up, down, sum = step(up, down)
    again = up
    progress.at = up
    if round % 500 == 0 then gethook() end
    if round % 2000 == 0 then dump(nothing) end
    if sum ~= 200 then error("out of step") end
  end
  return up, down, again
end

local function outer(label)
  local before = 7
  local turns = 0
  while true do
    turns = turns + 1
    local up, down, again = steps(1e6)
    if up + down ~= 100 or again ~= up then before = 0 end
  end
end

io.write("READY\n")
io.stdout:flush()
outer("steady")
