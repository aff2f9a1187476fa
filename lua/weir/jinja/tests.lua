--- The tests: `value is name`.
-- @module weir.jinja.tests
local objects = require "weir.jinja.objects"
local operators = require "weir.jinja.operators"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local strings = require "weir.jinja.strings"
local printing = require "weir.jinja.printing"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local null, compare = values.null, operators.compare

-- Whether the remainder of a division by two is so much.
local function leaves(rest)
  return function(v) return objects.equal(operators.mod(v, 2), rest) end
end

local function divisible(v, by)
  local n, d = values.number(v), values.number(by)
  if not n or not d or d == 0 then
    run.fail("divisibleby: wanted numbers, the second not zero, got '%s' and '%s'", values.type(v), values.type(by))
  end
  return n % d == 0
end

local function is_number(v)
  return values.number(v) ~= nil
end

local function is_float(v)
  local _, float = values.number(v)
  return float or false
end

local function same(a, b)
  if text.is(a) then
    return text.is(b) and text.raw(a) == text.raw(b)
  end
  return a == b
end

local sequences = {[values.List] = true, [values.Tuple] = true, [values.Dict] = true, [values.Range] = true, [values.Undefined] = true}

local function is_sequence(v)
  return text.is(v) or sequences[values.class(v)] or false
end

local function is_callable(v)
  local c = values.class(v)
  return c == values.Function or c == values.Loop or c == values.Undefined
end

local plain = {
  defined = function(v) return not values.is_undefined(v) end,
  undefined = values.is_undefined,
  none = function(v) return v == null end,
  boolean = function(v) return type(v) == "boolean" end,
  ["true"] = function(v) return v == true end,
  ["false"] = function(v) return v == false end,
  integer = function(v) return type(v) ~= "boolean" and values.integer(v) ~= nil end,
  float = is_float,
  number = is_number,
  string = text.is,
  mapping = function(v) return values.class(v) == values.Dict end,
  sequence = is_sequence,
  iterable = objects.is_iterable,
  callable = is_callable,
  odd = leaves(1),
  even = leaves(0),
  lower = function(v) return strings.islower(printing.str(v)) end,
  upper = function(v) return strings.isupper(printing.str(v)) end,
  escaped = text.is_safe,
}

local binary = {
  divisibleby = divisible, sameas = same, ["in"] = compare["in"],
  eq = compare.eq, equalto = compare.eq, ["=="] = compare.eq, ne = compare.ne, ["!="] = compare.ne,
  gt = compare.gt, greaterthan = compare.gt, [">"] = compare.gt, ge = compare.gteq, [">="] = compare.gteq,
  lt = compare.lt, lessthan = compare.lt, ["<"] = compare.lt, le = compare.lteq, ["<="] = compare.lteq,
}

local tests = {}

for name, fn in pairs(plain) do
  tests[name] = signature.bind(name, "", fn)
end
for name, fn in pairs(binary) do
  tests[name] = signature.bind(name, "other", fn)
end

return tests
