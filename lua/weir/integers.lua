--- Numbers that a Lua number cannot tell: 64-bit integers (how the C half makes them of two halves and takes them apart), and reals that look like integers.
-- @module weir.integers
local ffi = require "ffi"
local core = require "weir.core"

local int64, uint64 = ffi.typeof "int64_t", ffi.typeof "uint64_t"

core.register("join", function(unsigned, high, low)
  local n = ffi.cast(uint64, high) * 0x100000000ULL + ffi.cast(uint64, low)
  return unsigned and n or ffi.cast(int64, n)
end)

core.register("real", function(value)
  return ffi.new("double", value)
end)

core.register("split", function(value)
  if not (ffi.istype(int64, value) or ffi.istype(uint64, value)) then
    return nil
  end
  local n = ffi.cast(uint64, value)
  return ffi.istype(uint64, value), tonumber(n / 0x100000000ULL), tonumber(n % 0x100000000ULL)
end)

return true
