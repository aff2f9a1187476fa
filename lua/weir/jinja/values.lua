--- The values of templates and their kinds, as Python has them. Lua's strings (and marked texts), booleans and numbers without a fraction stand for str, bool and
-- int, numbers with one for float, weir.null for None; the rest are tables of the classes here. What comes from outside is copied, so a template changes nothing there.
-- @module weir.jinja.values
local ffi = require "ffi"
local core = require "weir.core"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"

local values = {}

local null = core.null
local map_meta = getmetatable(require "weir".map {}) -- of tables that are maps even if they are empty
values.null = null

local MAX_DEPTH = 200 -- of values from outside
local WHOLE = 2 ^ 53 -- integers are exact up to here

local function class(name)
  return {class = name}
end

local List, Tuple, Dict, View = class "list", class "tuple", class "dict", class "dict_view"
local Generator, Range, Namespace = class "generator", class "range", class "Namespace"
local Undefined, Function, Float, Loop = class "Undefined", class "function", class "float", class "LoopContext"
values.List, values.Tuple, values.Dict, values.View, values.Generator = List, Tuple, Dict, View, Generator
values.Range, values.Namespace, values.Undefined, values.Function, values.Loop = Range, Namespace, Undefined, Function, Loop

local int64, uint64, double = ffi.typeof "int64_t", ffi.typeof "uint64_t", ffi.typeof "double"

-- ---- making ----

--- A list of an array of n values, which it keeps.
function values.list(array, n)
  array.n = n or #array
  return setmetatable(array, List)
end

function values.tuple(array, n)
  array.n = n or #array
  return setmetatable(array, Tuple)
end

--- An iterator over an array of values: it can be gone through once.
function values.generator(array, n)
  array.n = n or #array
  array.at = 0
  return setmetatable(array, Generator)
end

--- What dict.keys and the like give: an array that can be gone through any number of times.
function values.view(name, array, n)
  array.n, array.name = n or #array, name
  return setmetatable(array, View)
end

--- The ints from start up or down to stop, which is not included.
function values.range(start, stop, step)
  return setmetatable({start = start, stop = stop, step = step, n = math.max(0, math.ceil((stop - start) / step))}, Range)
end

function values.dict()
  return setmetatable({keys = {}, at = {}}, Dict)
end

--- The value that stands for something that is not there.
-- @tparam string why what errors say of it
function values.undefined(why)
  return setmetatable({why = why}, Undefined)
end

--- A function of templates.
-- @tparam string name
-- @tparam function call fn(args, kwargs), args an array with n, kwargs nil or an array of names that also has each value under its name
-- @tparam[opt] table fields what templates may read of it
function values.func(name, call, fields)
  return setmetatable({name = name, call = call, fields = fields or {}}, Function)
end

--- A float.
function values.float(x)
  if x == math.floor(x) and x - x == 0 then
    return setmetatable({x = x}, Float)
  end
  return x
end

--- An int, which must be exact.
function values.int(x)
  if not (x <= WHOLE and x >= -WHOLE) then
    run.fail "an integer beyond 2^53"
  end
  return x == 0 and 0 or x -- -0 is no int
end

-- ---- kinds ----

--- The class of a value that is a table; nil for others.
function values.class(v)
  local c = getmetatable(v)
  return type(v) == "table" and c or nil
end

function values.is_undefined(v)
  return getmetatable(v) == Undefined
end

--- A number's Lua value; nil for what is no number. Booleans are numbers in Python.
-- @treturn number|nil
-- @treturn boolean whether it is a float
function values.number(v)
  local kind = type(v)
  if kind == "number" then
    return v, v ~= math.floor(v) or v - v ~= 0
  elseif kind == "boolean" then
    return v and 1 or 0, false
  elseif kind == "cdata" then
    return tonumber(v), false
  elseif getmetatable(v) == Float then
    return v.x, true
  end
  return nil
end

--- An int's Lua value; nil for others.
function values.integer(v)
  local n, is_float = values.number(v)
  return n and not is_float and n or nil
end

--- What Python calls the type.
function values.type(v)
  if text.is(v) then
    return text.is_safe(v) and "Markup" or "str"
  elseif v == null then
    return "NoneType"
  elseif type(v) == "boolean" then
    return "bool"
  end
  local n, is_float = values.number(v)
  if n then
    return is_float and "float" or "int"
  end
  local c = getmetatable(v)
  return c == View and v.name or c.class
end

-- ---- dictionaries ----

-- What a key is known by: equal keys of Python are one value of Lua.
local function known_by(key)
  local raw = text.raw(key)
  if raw then
    return raw
  elseif key == null then
    return null
  end
  local n = values.number(key)
  if n then
    return n
  elseif getmetatable(key) == Tuple then
    local parts = {}
    for i = 1, key.n do
      local part = known_by(key[i])
      parts[i] = type(part) .. ":" .. #tostring(part) .. ":" .. tostring(part)
    end
    return "\0tuple:" .. table.concat(parts, ",")
  elseif getmetatable(key) == Undefined then
    return Undefined
  elseif getmetatable(key) == List or getmetatable(key) == Dict then
    run.fail("unhashable type: '%s'", values.type(key))
  end
  return key
end

function values.get(dict, key)
  return dict.at[known_by(key)]
end

function values.put(dict, key, value)
  local k = known_by(key)
  if dict.at[k] == nil then
    run.spend(1)
    dict.keys[#dict.keys + 1] = key
  end
  dict.at[k] = value
end

--- Calls fn(key, value) in order.
function values.each(dict, fn)
  run.spend(#dict.keys)
  for _, key in ipairs(dict.keys) do
    fn(key, values.get(dict, key))
  end
end

-- ---- from outside ----

local convert

-- Keys of a table in the order of its JSON object; else integers, then strings, sorted.
local function keys_of(t)
  local meta = getmetatable(t)
  if type(meta) == "table" and type(meta.keys) == "table" then
    return meta.keys
  end
  local keys = {}
  for key in pairs(t) do
    if type(key) ~= "string" and type(key) ~= "number" then
      run.fail("a key of a variable is a %s, wanted a string", type(key))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then
      return type(a) == "number"
    end
    return a < b
  end)
  return keys
end

local function is_array(t)
  local meta = getmetatable(t)
  if type(meta) == "table" and (meta.keys or meta == map_meta) then
    return false
  end
  local count = 0
  for _ in pairs(t) do
    count = count + 1
  end
  return count == #t
end

local function convert_table(t, depth)
  if depth > MAX_DEPTH then
    run.fail("a variable is nested deeper than %d, or contains itself", MAX_DEPTH)
  elseif is_array(t) then
    local array = {}
    for i, v in ipairs(t) do
      array[i] = convert(v, depth + 1)
    end
    return values.list(array)
  end
  local dict = values.dict()
  for _, key in ipairs(keys_of(t)) do
    local v = t[key]
    if v ~= nil then
      dict.keys[#dict.keys + 1] = key
      dict.at[key] = convert(v, depth + 1)
    end
  end
  return dict
end

function convert(v, depth)
  local kind = type(v)
  if kind == "string" or kind == "boolean" or v == null or kind == "number" or text.is(v) then
    return v
  elseif kind == "table" then
    return convert_table(v, depth)
  elseif kind == "cdata" and ffi.istype(double, v) then
    return values.float(tonumber(v))
  elseif kind == "cdata" and (ffi.istype(int64, v) or ffi.istype(uint64, v)) then
    return v
  end
  return run.fail("a variable is a %s, which templates do not have", kind)
end

--- A value of a script or of JSON: tables with the keys 1..n (or none) are lists, others dicts.
function values.from(v)
  return convert(v, 1)
end

return values
