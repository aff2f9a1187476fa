--- A typed view of memory: a weir.buffer, or memory that FFI made. Indices count from 0.
-- @module weir.tensor
local ffi = require "ffi"
local errors = require "weir.errors"

local tensor = {}

local types = {
  F32 = {ffi.typeof "float *", 4}, F64 = {ffi.typeof "double *", 8}, I32 = {ffi.typeof "int32_t *", 4},
  I64 = {ffi.typeof "int64_t *", 8}, U8 = {ffi.typeof "uint8_t *", 1},
}

local meta = {}
meta.__index = meta

local function elements(shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  return n
end

--- Size of one element of a type in bytes; nil for an unknown type.
-- @tparam string dtype
-- @treturn number
function tensor.element_size(dtype)
  return types[dtype] and types[dtype][2]
end

--- Makes a view.
-- @param memory a weir.buffer, or a pointer made by FFI (then the caller keeps `anchor` alive through it)
-- @tparam string dtype F32, F64, I32, I64 or U8
-- @tparam table shape sizes, slowest first
-- @tparam[opt=0] number offset bytes
-- @param[opt] anchor what must live as long as the view
-- @treturn table the tensor
function tensor.new(memory, dtype, shape, offset, anchor)
  local type_ = types[dtype]
  offset = offset or 0
  if not type_ then
    error(errors.new("EINVAL", "a tensor of type " .. tostring(dtype) .. "; wanted F32, F64, I32, I64 or U8"), 2)
  end
  local bytes = elements(shape) * type_[2]
  if type(memory) == "userdata" then
    local size = memory:size()
    if offset < 0 or offset + bytes > size then
      error(errors.new("EINVAL", ("a tensor of %d bytes at %d in a buffer of %d"):format(bytes, offset, size)), 2)
    end
    anchor, memory = memory, memory:pointer()
  end
  return setmetatable({
    dtype = dtype, shape = shape, bytes = bytes, anchor = anchor or memory,
    data = ffi.cast(type_[1], ffi.cast("uint8_t *", memory) + offset),
  }, meta)
end

local function bad_index(self, dimension, index)
  local text = "index %s of dimension %d, which has %s elements (counted from 0)"
  error(errors.new("EINVAL", text:format(tostring(index), dimension - 1, tostring(self.shape[dimension]))), 3)
end

--- The element at these indices, one for each dimension.
-- @param ... indices from 0
-- @treturn number
function meta:get(...)
  local at = 0
  for dimension = 1, #self.shape do
    local index = select(dimension, ...)
    local size = self.shape[dimension]
    if type(index) ~= "number" or index < 0 or index >= size or index % 1 ~= 0 then
      bad_index(self, dimension, index)
    end
    at = at * size + index
  end
  return tonumber(self.data[at])
end

--- The view of what lies under index i of the first dimension.
-- @tparam number i from 0
-- @treturn table a tensor
function meta:row(i)
  if type(i) ~= "number" or i < 0 or i >= self.shape[1] or i % 1 ~= 0 then
    bad_index(self, 1, i)
  end
  local shape = {unpack(self.shape, 2)}
  return setmetatable({
    dtype = self.dtype, shape = shape, bytes = elements(shape) * types[self.dtype][2], anchor = self.anchor,
    data = self.data + i * elements(shape),
  }, meta)
end

--- All elements in a Lua array, whatever the shape.
-- @treturn table
function meta:table()
  local all = {}
  for i = 1, elements(self.shape) do
    all[i] = tonumber(self.data[i - 1])
  end
  return all
end

function meta:__tostring()
  local n, shown = elements(self.shape), {}
  for i = 1, math.min(n, 8) do
    shown[i] = ("%.6g"):format(tonumber(self.data[i - 1]))
  end
  return ("%s [%s] {%s%s}"):format(self.dtype, table.concat(self.shape, ", "), table.concat(shown, ", "), n > 8 and ", ..." or "")
end

return tensor
