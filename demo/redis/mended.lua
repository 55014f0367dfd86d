-- What all customers have spent.
local function total(keys)
  local sum = 0
  for _, key in ipairs(keys) do sum = sum + tonumber(redis.call('HGET', key, 'spent')) end
  return sum
end

return total(redis.call('SMEMBERS', 'customers'))
