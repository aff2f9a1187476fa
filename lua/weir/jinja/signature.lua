--- Arguments of functions, methods and filters: positional and named ones put in their places. Functions with a signature take self and the arguments in order, nil
-- for those left out; others take self, args (an array with n) and kwargs (nil, or the names in an array and under each its value).
-- @module weir.jinja.signature
local objects = require "weir.jinja.objects"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local signature = {}

local function read(spec)
  local names, needed, places = {}, 0, {}
  for word in spec:gmatch "%S+" do
    local name = word:gsub("%?$", "")
    names[#names + 1] = name
    places[name] = #names
    needed = word:sub(-1) == "?" and needed or #names
  end
  return names, needed, places
end

--- Makes fn(self, a, b, ...) a function of (self, args, kwargs).
-- @tparam string name for errors
-- @tparam string spec names of the arguments, those that may be left out with a "?" behind
-- @tparam function fn
function signature.bind(name, spec, fn)
  local names, needed, places = read(spec)
  local most = #names
  return function(self, args, kwargs)
    local given = {}
    if args.n > most then
      run.fail("%s takes %d arguments at most, got %d", name, most, args.n)
    end
    for i = 1, args.n do
      given[i] = args[i]
    end
    for _, key in ipairs(kwargs or {}) do
      local place = places[key]
      if not place then
        run.fail("%s got an unexpected keyword argument '%s'", name, key)
      elseif given[place] ~= nil then
        run.fail("%s got multiple values for argument '%s'", name, key)
      end
      given[place] = kwargs[key]
    end
    for i = 1, needed do
      if given[i] == nil then
        run.fail("%s misses its argument '%s'", name, names[i])
      end
    end
    return fn(self, unpack(given, 1, most))
  end
end

--- A table of functions, each bound: {name = {spec, fn}} or {name = fn} for those that take args and kwargs.
function signature.table(functions)
  local bound = {}
  for name, row in pairs(functions) do
    bound[name] = type(row) == "table" and signature.bind(name, row[1], row[2]) or row
  end
  return bound
end

-- ---- checks of arguments ----

--- An argument that must be a text.
function signature.text(v, name)
  if not text.is(v) then
    if values.is_undefined(v) then
      objects.fail_undefined(v)
    end
    run.fail("%s: wanted a string, got '%s'", name, values.type(v))
  end
  return v
end

--- An argument that must be an int; `default` if it was left out or is None.
function signature.int(v, name, default)
  if v == nil or v == values.null and default ~= nil then
    return default
  end
  local n = values.integer(v)
  if not n then
    run.fail("%s: wanted an integer, got '%s'", name, values.type(v))
  end
  return n
end

return signature
