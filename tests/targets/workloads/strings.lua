-- strings.lua: keeps the last 20,000 strings of one size, so that one of them is where most of those that are gone were, and
-- keeps some of another size for good.
local most, ring, kept, n = 20000, {}, {}, 0
local function strings_site1() n = n + 1 ring[n % most] = "another string of the ring " .. (1000000 + n) end
local function strings_site2() if n % 100 == 0 then kept[#kept + 1] = "one of those strings that are kept for good " .. (1000000 + n) end end
for i = 1, most do strings_site1() end
io.write("READY\n") io.flush()
while true do for i = 1, 100 do strings_site1() strings_site2() end for i = 1, 20000 do local x = i % 7 end end
