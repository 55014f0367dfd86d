-- The module "counter" for LuaJIT, whose compiler does not compile calls of C functions such as
-- those in counter.c.
local ffi = require("ffi")
local cell = ffi.new("struct { volatile uint64_t progress, looks; volatile uint32_t wanted, doing; }[1]")
return {
  address = tonumber(ffi.cast("uintptr_t", cell)),
  step = function()
    cell[0].progress = cell[0].progress + 1
    return cell[0].wanted
  end,
  look = function() cell[0].looks = cell[0].looks + 1 end,
  doing = function(what) cell[0].doing = what end,
  keep = cell,
}
