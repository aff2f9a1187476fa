--- Arithmetic and joining of values, subscripts and slices, as Python has them.
-- @module weir.jinja.operators
local characters = require "weir.jinja.characters"
local formatting = require "weir.jinja.formatting"
local markup = require "weir.jinja.markup"
local objects = require "weir.jinja.objects"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local operators = {}

local List, Tuple, Dict, Range = values.List, values.Tuple, values.Dict, values.Range
local null = values.null

local function refuse(name, a, b)
  for _, v in ipairs {a, b} do
    if values.is_undefined(v) then
      objects.fail_undefined(v)
    end
  end
  run.fail("unsupported operand type(s) for %s: '%s' and '%s'", name, values.type(a), values.type(b))
end

local function result(x, is_float)
  return is_float and values.float(x) or not is_float and values.int(x)
end

-- A function of two numbers as an operator.
local function arithmetic(name, compute)
  return function(a, b)
    local m, m_float = values.number(a)
    local n, n_float = values.number(b)
    if not m or not n then
      refuse(name, a, b)
    end
    return result(compute(m, n, m_float or n_float))
  end
end

local function check_divisor(n)
  if n == 0 then
    run.fail "division by zero"
  end
end

-- Python's quotient, rounded down, and remainder, which has the divisor's sign.
local function divide(m, n)
  check_divisor(n)
  local rest = math.fmod(m, n)
  local quotient = (m - rest) / n
  if rest ~= 0 and (rest < 0) ~= (n < 0) then
    rest, quotient = rest + n, quotient - 1
  end
  return math.floor(quotient + 0.5), rest
end

operators.sub = arithmetic("-", function(m, n, is_float) return m - n, is_float end)
operators.div = arithmetic("/", function(m, n) check_divisor(n) return m / n, true end)
operators.floordiv = arithmetic("//", function(m, n, is_float) return (divide(m, n)), is_float end)
operators.pow = arithmetic("** or pow()", function(m, n, is_float)
  if m == 0 and n < 0 then
    run.fail "0.0 cannot be raised to a negative power"
  elseif m < 0 and n ~= math.floor(n) then
    run.fail "a negative number to a power that is no integer"
  end
  local power = m ^ n
  if power - power ~= 0 and m - m == 0 and n - n == 0 then
    run.fail "a power that is too large"
  end
  return power, is_float or n < 0
end)
local modulo = arithmetic("%", function(m, n, is_float) return select(2, divide(m, n)), is_float end)
local plus = arithmetic("+", function(m, n, is_float) return m + n, is_float end)
local times = arithmetic("*", function(m, n, is_float) return m * n, is_float end)

--- a % b: the remainder, or a format with its arguments.
function operators.mod(a, b)
  if text.is(a) then
    return formatting.percent(a, b)
  end
  return modulo(a, b)
end

local function joined(a, b, make)
  run.spend(a.n + b.n)
  local array, n = {}, a.n
  for i = 1, n do
    array[i] = a[i]
  end
  for i = 1, b.n do
    array[n + i] = b[i]
  end
  return make(array, n + b.n)
end

--- a + b of numbers, texts, lists or tuples.
function operators.add(a, b)
  if type(a) == "number" and type(b) == "number" then
    return plus(a, b)
  elseif text.is(a) then
    if text.is(b) then
      return markup.add({a, b}, 2)
    elseif values.is_undefined(b) then
      objects.fail_undefined(b)
    end
    run.fail("can only concatenate str (not \"%s\") to str", values.type(b))
  end
  local c = values.class(a)
  if c == List and values.class(b) == List then
    return joined(a, b, values.list)
  elseif c == Tuple and values.class(b) == Tuple then
    return joined(a, b, values.tuple)
  end
  return plus(a, b)
end

local function repeated(v, n, make)
  n = math.max(n, 0)
  run.spend(v.n * n)
  local array = {}
  for i = 0, v.n * n - 1 do
    array[i + 1] = v[i % v.n + 1]
  end
  return make(array, v.n * n)
end

--- a * b of numbers, or a sequence and an int.
function operators.mul(a, b)
  for _, pair in ipairs {{a, b}, {b, a}} do
    local v, n = pair[1], values.integer(pair[2])
    local c = values.class(v)
    if n and text.is(v) then
      return text.rep(v, n)
    elseif n and c == List then
      return repeated(v, n, values.list)
    elseif n and c == Tuple then
      return repeated(v, n, values.tuple)
    end
  end
  return times(a, b)
end

function operators.neg(v)
  local n, is_float = values.number(v)
  if not n then
    run.fail("bad operand type for unary -: '%s'", values.type(v))
  end
  return result(is_float and -n or 0 - n, is_float)
end

function operators.pos(v)
  local n, is_float = values.number(v)
  if not n then
    run.fail("bad operand type for unary +: '%s'", values.type(v))
  end
  return result(n, is_float)
end

--- a ~ b ~ ...: the texts of all, joined.
function operators.concat(array, n)
  for i = 1, n do
    array[i] = printing.str(array[i])
  end
  return text.concat(array, n)
end

-- ---- comparisons ----

operators.compare = {
  eq = objects.equal,
  ne = function(a, b) return not objects.equal(a, b) end,
  lt = function(a, b) return objects.less(a, b, "<") end,
  gt = function(a, b) return objects.less(b, a, ">") end,
  lteq = function(a, b) return objects.less(a, b, "<=") or objects.equal(a, b) end,
  gteq = function(a, b) return objects.less(b, a, ">=") or objects.equal(a, b) end,
  ["in"] = function(a, b) return objects.contains(b, a) end,
  notin = function(a, b) return not objects.contains(b, a) end,
}

-- ---- subscripts ----

-- An index from the front, or nil if it is outside of a sequence of n.
local function inside(i, n)
  i = i < 0 and i + n or i
  return i >= 0 and i < n and i or nil
end

local function text_at(v, i)
  local raw = text.raw(v)
  run.spend_scan(#raw)
  i = inside(i, characters.length(raw))
  if not i then
    return nil
  end
  return text.sub(v, characters.bytes(raw, i, i + 1))
end

--- v[key] for what v has itself (no attributes); nil if it is not there.
function operators.item(v, key)
  local c = values.class(v)
  if c == Dict then
    local k = values.class(key)
    if k == List or k == Dict then
      return nil
    end
    return values.get(v, key)
  end
  local i = values.integer(key)
  if not i then
    return nil
  elseif text.is(v) then
    return text_at(v, i)
  elseif c == List or c == Tuple or c == Range then
    i = inside(i, v.n)
    if i and c == Range then
      return v.start + i * v.step
    end
    return i and v[i + 1]
  end
  return nil
end

-- ---- slices ----

local function bound(v, default, n, low, high)
  if v == nil or v == null then
    return default
  end
  local i = values.integer(v)
  if not i then
    if values.is_undefined(v) then
      objects.fail_undefined(v)
    end
    run.fail "slice indices must be integers or None or have an __index__ method"
  end
  i = i < 0 and i + n or i
  return math.max(low, math.min(high, i))
end

-- Where a slice of n elements begins and ends (not included), and its step.
local function slice_bounds(n, start, stop, step)
  step = (step == nil or step == null) and 1 or values.integer(step) or run.fail "slice indices must be integers or None or have an __index__ method"
  if step == 0 then
    run.fail "slice step cannot be zero"
  elseif step > 0 then
    return bound(start, 0, n, 0, n), bound(stop, n, n, 0, n), step
  end
  return bound(start, n - 1, n, -1, n - 1), bound(stop, -1, n, -1, n - 1), step
end

local function slice_text(v, start, stop, step)
  local raw = text.raw(v)
  run.spend_scan(#raw)
  local n = characters.length(raw)
  start, stop, step = slice_bounds(n, start, stop, step)
  if step == 1 then
    return stop > start and text.sub(v, characters.bytes(raw, start, stop)) or ""
  end
  local starts, pieces = characters.starts(raw), {}
  for i = start, stop + (step > 0 and -1 or 1), step do
    pieces[#pieces + 1] = text.sub(v, starts[i + 1], starts[i + 2] - 1)
  end
  return text.concat(pieces)
end

local function slice_array(v, make, start, stop, step)
  start, stop, step = slice_bounds(v.n, start, stop, step)
  local array, n = {}, 0
  for i = start, stop + (step > 0 and -1 or 1), step do
    run.spend(1)
    n = n + 1
    array[n] = v[i + 1]
  end
  return make(array, n)
end

--- v[start:stop:step]; nil if v cannot be sliced.
function operators.slice(v, start, stop, step)
  local c = values.class(v)
  if text.is(v) then
    local sliced = slice_text(v, start, stop, step)
    return text.is_safe(v) and text.safe(sliced) or sliced
  elseif c == List then
    return slice_array(v, values.list, start, stop, step)
  elseif c == Tuple then
    return slice_array(v, values.tuple, start, stop, step)
  elseif c == Range then
    start, stop, step = slice_bounds(v.n, start, stop, step)
    return values.range(v.start + start * v.step, v.start + stop * v.step, v.step * step)
  end
  return nil
end

return operators
