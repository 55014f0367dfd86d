-- For Luas with to-be-closed variables; see steps.lua.
local function closer(object, message) -- from: pcall close
  local n = 1
  return n
end
local function closable()
  return (setmetatable({}, {__close = closer}))
end
local function closes()
  local a <close> = closable()
  local b <close> = closable()
  return 1, 2 -- closer
end
local function throws_through() -- from: pcall
  local a <close> = closable()
  error("thrown") -- closer
end
local function breaks()
  for i = 1, 2 do
    local a <close> = closable()
    if i == 2 then break end -- closer
  end -- closer
end
local function gives_with_closer() -- from: resume
  local a <close> = closable()
  coroutine.yield(1) -- closer
end
local function gives_in_closer(object) 
  coroutine.yield(2)
end
local function yields_while_closing() -- from: resume
  local a <close> = setmetatable({}, {__close = gives_in_closer})
  return 1 -- gives_in_closer
end
local function closing()
  closes()
  breaks()
  pcall(throws_through)
  local co = coroutine.create(gives_with_closer)
  coroutine.resume(co)
  coroutine.close(co)
  co = coroutine.create(yields_while_closing)
  coroutine.resume(co)
  coroutine.resume(co)
end
return {"closing", closing}
