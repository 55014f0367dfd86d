-- Required by states.lua, whose caller is to be found inside this file.
local function initialise() inside_module() return true end
return { initialised = initialise() }
