-- Profilers that run in the target itself: 1 is LuaJIT's jit.p, 2 a count hook that takes tracebacks. Environment: BENCH_PROFILE is
-- where jit.p writes, BENCH_COUNT the hook's count.
local counter = require(jit and "counter_ffi" or "counter")
local tools = {}

local function look()
  counter.look()
  return #debug.traceback()
end

function tools.switch(was, wanted)
  if was == 1 then require("jit.p").stop() end
  if was == 2 then debug.sethook() end
  if wanted == 1 then require("jit.p").start("vfi1", os.getenv("BENCH_PROFILE")) end
  if wanted == 2 then debug.sethook(look, "", tonumber(os.getenv("BENCH_COUNT"))) end
end

return tools
