-- For nginx: each phase is worked in by a function of its own, so that a stack tells what the phase has to be.
local phase_nginx = {}

local function spin(least)
  local begin, x = os.clock(), 0
  repeat
    for i = 1, 500 do x = x + i % 7 end
  until os.clock() - begin >= least
  return x
end

function phase_nginx.set() local x = spin(0.001) return x end
function phase_nginx.rewrite() local x = spin(0.001) return x end
function phase_nginx.access() local x = spin(0.002) ngx.sleep(0) return x end
function phase_nginx.content() local x = spin(0.002) ngx.say(x) x = x + spin(0.001) return x end
function phase_nginx.header_filter() local x = spin(0.001) return x end
function phase_nginx.body_filter() local x = spin(0.001) return x end
function phase_nginx.log() local x = spin(0.001) return x end
function phase_nginx.timer() local x = spin(0.001) return x end

function phase_nginx.serve() phase_nginx.content() end

function phase_nginx.start()
  ngx.timer.every(0.01, function() phase_nginx.timer() end)
  io.stdout:write("READY\n")
  io.stdout:flush()
end

return phase_nginx
