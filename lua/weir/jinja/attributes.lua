--- Attributes and items of values: methods of lists and dicts, fields of namespaces, loops and functions; what `a.b` and `a[b]` give.
-- @module weir.jinja.attributes
local markup_methods = require "weir.jinja.markup_methods"
local objects = require "weir.jinja.objects"
local operators = require "weir.jinja.operators"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local strings = require "weir.jinja.strings"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local attributes = {}

local null = values.null

-- ---- lists and tuples ----

local function place_in(self, value)
  for i = 1, self.n do
    run.spend(1)
    if objects.equal(self[i], value) then
      return i
    end
  end
end

local function index(self, value)
  local i = place_in(self, value)
  if not i then
    run.fail("%s is not in the list", text.raw(printing.repr(value)))
  end
  return i - 1
end

local function count(self, value)
  local n = 0
  for i = 1, self.n do
    run.spend(1)
    n = n + (objects.equal(self[i], value) and 1 or 0)
  end
  return n
end

local list_methods = signature.table {
  index = {"value", index}, count = {"value", count}, copy = {"", function(self) return values.list(objects.collect(self)) end},
}

local tuple_methods = {index = list_methods.index, count = list_methods.count}

-- ---- dicts ----

local function keys(self)
  return values.view("dict_keys", objects.collect(self))
end

local function listed(name, make)
  return function(self)
    local array = {}
    values.each(self, function(key, value) array[#array + 1] = make(key, value) end)
    return values.view(name, array)
  end
end

attributes.items = listed("dict_items", function(key, value) return values.tuple({key, value}, 2) end)

local function or_none(value, default)
  if value ~= nil then
    return value
  end
  return default == nil and null or default
end

local function copy(self)
  local new = values.dict()
  values.each(self, function(key, value) values.put(new, key, value) end)
  return new
end

local dict_methods = signature.table {
  keys = {"", keys}, values = {"", listed("dict_values", function(_, value) return value end)}, items = {"", attributes.items}, copy = {"", copy},
  get = {"key default?", function(self, key, default) return or_none(values.get(self, key), default) end},
}

-- ---- integers ----

local function bit_length(self)
  local n, bits = math.abs(values.integer(self)), 0
  while n >= 1 do
    n, bits = n / 2, bits + 1
  end
  return bits
end

local int_methods = signature.table {bit_length = {"", bit_length}}

-- Methods that change their object: transformers' sandbox refuses them, and so do templates here.
local mutators = {[values.List] = {}, [values.Dict] = {}}
for name in ("append clear extend insert pop remove reverse sort"):gmatch "%S+" do
  mutators[values.List][name] = true
end
for name in ("clear pop popitem setdefault update"):gmatch "%S+" do
  mutators[values.Dict][name] = true
end

-- ---- lookups ----

local by_class = {[values.List] = list_methods, [values.Tuple] = tuple_methods, [values.Dict] = dict_methods}

--- The method of a value by name: fn(self, args, kwargs); nil if there is none.
function attributes.method(v, name)
  if text.is(v) then
    return (text.is_safe(v) and markup_methods or strings.methods)[name]
  end
  local methods = by_class[values.class(v)] or values.integer(v) and int_methods
  return methods and methods[name]
end

-- What a value has under a name besides items; nil if nothing.
local function own(v, name)
  local method = attributes.method(v, name)
  if method then
    return values.func(name, function(args, kwargs) return method(v, args, kwargs) end)
  end
  local c = values.class(v)
  if c == values.Namespace then
    return values.get(v.dict, name)
  elseif c == values.Loop then
    return v:field(name)
  elseif c == values.Function then
    return v.fields[name]
  elseif c == values.Range and (name == "start" or name == "stop" or name == "step") then
    return v[name]
  elseif c == values.Tuple and v.fields then
    return v[v.fields[name]]
  end
  return nil
end

local function missing(v, key)
  local name = text.raw(printing.str(key))
  local refused = mutators[values.class(v)]
  if refused and refused[name] then
    return values.undefined(("access to attribute '%s' of '%s' object is unsafe: templates change no values"):format(name, values.type(v)))
  elseif v == null then
    return values.undefined(("'None' has no attribute '%s'"):format(name))
  elseif text.is(key) then
    return values.undefined(("'%s object' has no attribute '%s'"):format(values.type(v), name))
  end
  return values.undefined(("%s object has no element %s"):format(values.type(v), name))
end

--- v.name: what v has itself, else its item.
function attributes.attribute(v, name)
  if values.is_undefined(v) then
    objects.fail_undefined(v)
  end
  local found = own(v, name)
  if found == nil and values.class(v) == values.Dict then
    found = values.get(v, name)
  end
  return found == nil and missing(v, name) or found
end

--- v[key]: the item, else what v has under that name.
function attributes.item(v, key)
  if values.is_undefined(v) then
    objects.fail_undefined(v)
  end
  local found = operators.item(v, key)
  if found == nil and text.is(key) then
    found = own(v, text.raw(key))
  end
  return found == nil and missing(v, key) or found
end

--- v[start:stop:step].
function attributes.slice(v, start, stop, step)
  if values.is_undefined(v) then
    objects.fail_undefined(v)
  end
  return operators.slice(v, start, stop, step) or run.fail("'%s' object cannot be sliced", values.type(v))
end

--- Follows a path of names and numbers with dots between them, as attribute= of filters does.
function attributes.path(v, path)
  local n = values.integer(path)
  if n then
    return attributes.item(v, n)
  end
  for part in text.raw(signature.text(path, "attribute")):gmatch "[^.]+" do
    v = attributes.item(v, part:find "^%d+$" and tonumber(part) or part)
  end
  return v
end

strings.lookup = attributes.item

--- Calls a value.
function attributes.call(v, args, kwargs)
  local c = values.class(v)
  if c == values.Function then
    return v.call(args, kwargs)
  elseif c == values.Loop then
    return v:call(args, kwargs)
  elseif c == values.Undefined then
    objects.fail_undefined(v)
  end
  return run.fail("'%s' object is not callable", values.type(v))
end

return attributes
