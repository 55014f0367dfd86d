-- Required by states.lua: the innermost call comes from within this file.
local function initialise() inside_module() return true end
return { initialised = initialise() }
