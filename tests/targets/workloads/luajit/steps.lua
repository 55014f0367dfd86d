-- Locals of one frame that are consistent at every instant: the sum of `up` and `down` is 100, or one of them is ahead by one; `again` equals
-- `up` or is behind it by one, and so is the value in the table `progress`, which machine code writes in every round. It enters and leaves traces
-- all the time: the loop sometimes calls functions that are not compiled. These are not system calls: at the end of a system call, a thread yields to
-- the one that looks at it, and would always be found there.
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
