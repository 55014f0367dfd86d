-- What all customers have spent.
local function fields_of(key)
  local reply, fields = redis.call('HGETALL', key), {}
  for i = 1, #reply, 2 do fields[reply[i]] = reply[i + 1] end
  return fields
end

local function total(keys)
  local sum = 0
  for _, key in ipairs(keys) do sum = sum + tonumber(fields_of(key).spent) end
  return sum
end

return total(redis.call('SMEMBERS', 'customers'))
