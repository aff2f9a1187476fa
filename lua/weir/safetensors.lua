--- safetensors files (github.com/huggingface/safetensors, "Format"): u64 header length, JSON header, data. The writer streams from memory; the reader
-- checks every length against what is there.
-- @module weir.safetensors
local ffi = require "ffi"
local core = require "weir.core"
local errors = require "weir.errors"
local tensor = require "weir.tensor"

ffi.cdef [[
size_t fwrite(const void *from, size_t size, size_t count, void *file);
size_t fread(void *to, size_t size, size_t count, void *file);
]]

local safetensors = {}

local MAX_HEADER = 100e6 -- bytes: the format's own bound

local function length_bytes(n)
  local bytes = ffi.new("uint64_t[1]", n)
  return ffi.string(bytes, 8)
end

local function header_of(tensors, metadata)
  local header, offset = core.json.encode, 0
  local table_ = {}
  if metadata then
    table_.__metadata__ = metadata
  end
  for _, t in ipairs(tensors) do
    table_[t.name] = {dtype = t.tensor.dtype, shape = t.tensor.shape, data_offsets = {offset, offset + t.tensor.bytes}}
    offset = offset + t.tensor.bytes
  end
  local text = header(table_)
  return text .. (" "):rep(-#text % 8)
end

local function write_all(file, tensors, metadata)
  local header = header_of(tensors, metadata)
  local ok, reason = file:write(length_bytes(#header), header)
  for _, t in ipairs(tensors) do
    local bytes = t.tensor.bytes
    if not ok then
      break
    end
    ok = tonumber(ffi.C.fwrite(t.tensor.data, 1, bytes, file)) == bytes
  end
  if ok then
    ok, reason = file:flush()
  end
  file:close()
  return ok, reason
end

--- Writes a file: first beside its place, then renamed, so that a half-written one is never there.
-- @tparam string path
-- @tparam table tensors array of {name = string, tensor = weir.tensor}
-- @tparam[opt] table metadata strings
function safetensors.write(path, tensors, metadata)
  local part = path .. ".part"
  local file, reason = io.open(part, "wb")
  if not file then
    error(errors.new("EIO", reason))
  end
  local ok
  ok, reason = write_all(file, tensors, metadata)
  if ok then
    ok, reason = os.rename(part, path)
  end
  if not ok then
    os.remove(part)
    error(errors.new("EIO", path .. ": cannot be written: " .. tostring(reason or "disk full?")))
  end
end

local function malformed(path, text, ...)
  error(errors.new("EFORMAT", path .. ": " .. text:format(...)), 0)
end

local function is_count(n)
  return type(n) == "number" and n >= 0 and n < 2 ^ 53 and n % 1 == 0
end

-- Checks one entry of the header against the bytes of data that are there.
local function check_entry(path, name, entry, data_size)
  if type(entry) ~= "table" or type(entry.shape) ~= "table" or type(entry.data_offsets) ~= "table" then
    malformed(path, "tensor '%s' has no shape or no data_offsets", name)
  end
  local first, last = entry.data_offsets[1], entry.data_offsets[2]
  if not is_count(first) or not is_count(last) or first > last or last > data_size then
    malformed(path, "tensor '%s' has data_offsets %s, %s; the file has %d bytes of data", name, tostring(first), tostring(last), data_size)
  end
  local bytes = tensor.element_size(entry.dtype)
  if not bytes then
    malformed(path, "tensor '%s' has type %s, which is not read here", name, tostring(entry.dtype))
  end
  local sizes = {}
  for i, size in ipairs(entry.shape) do
    bytes = is_count(size) and bytes * size or -1
    sizes[i] = tostring(size)
  end
  if bytes ~= last - first then
    malformed(path, "tensor '%s' has shape [%s] and %d bytes of data", name, table.concat(sizes, ", "), last - first)
  end
end

local function read_header(path, file)
  local size = file:seek("end")
  file:seek("set")
  local length = file:read(8)
  if not length or #length < 8 then
    malformed(path, "shorter than a header's length")
  end
  local n = tonumber(ffi.cast("uint64_t *", length)[0])
  if n > size - 8 or n > MAX_HEADER then
    malformed(path, "a header of %.0f bytes in a file of %d", n, size)
  end
  local text = file:read(n) or ""
  local header = core.json.decode(text)
  if not text:match "^%s*{" then
    malformed(path, "the header is no JSON object")
  end
  return header, 8 + n, size - 8 - n
end

local Reader = {}
Reader.__index = Reader

--- Opens a file for reading.
-- @treturn table names (array), metadata, and the method tensor(name)
-- @tparam string path
-- @treturn table the file
function safetensors.open(path)
  local file, reason = io.open(path, "rb")
  if not file then
    error(errors.new("ENOENT", reason))
  end
  local header, start, data_size = read_header(path, file)
  local self = setmetatable({path = path, file = file, header = header, start = start, names = {}, metadata = header.__metadata__}, Reader)
  for name, entry in pairs(header) do
    if name ~= "__metadata__" then
      check_entry(path, name, entry, data_size)
      self.names[#self.names + 1] = name
    end
  end
  table.sort(self.names)
  return self
end

--- Reads a tensor; nil if the file has none of this name.
-- @tparam string name
-- @treturn table the tensor
function Reader:tensor(name)
  local entry = name ~= "__metadata__" and self.header[name]
  if not entry then
    return nil
  end
  local bytes = entry.data_offsets[2] - entry.data_offsets[1]
  local data = ffi.new("uint8_t[?]", math.max(bytes, 1))
  self.file:seek("set", self.start + entry.data_offsets[1])
  if tonumber(ffi.C.fread(data, 1, bytes, self.file)) ~= bytes then
    malformed(self.path, "the data of '%s' ends early", name)
  end
  return tensor.new(data, entry.dtype, entry.shape, 0, data)
end

--- Closes the file; tensors that were read stay.
function Reader:close()
  self.file:close()
end

return safetensors
