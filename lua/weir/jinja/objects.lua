--- What can be done with any value: truth, iteration, equality, order, membership, length.
-- @module weir.jinja.objects
local characters = require "weir.jinja.characters"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local objects = {}

local List, Tuple, Dict, View = values.List, values.Tuple, values.Dict, values.View
local Generator, Range, Undefined, Loop = values.Generator, values.Range, values.Undefined, values.Loop
local null = values.null

--- Ends the rendering because an undefined value was used.
function objects.fail_undefined(v)
  run.fail("%s", v.why)
end

--- Whether a value counts as true.
function objects.truth(v)
  local kind = type(v)
  if kind == "boolean" then
    return v
  elseif kind == "string" then
    return v ~= ""
  elseif kind == "number" then
    return v ~= 0
  elseif v == null then
    return false
  end
  local n = values.number(v)
  if n then
    return n ~= 0
  elseif text.is(v) then
    return text.raw(v) ~= ""
  end
  local c = getmetatable(v)
  if c == List or c == Tuple or c == View then
    return v.n > 0
  elseif c == Dict then
    return #v.keys > 0
  elseif c == Range then
    return v.n > 0
  end
  return c ~= Undefined
end

--- How many elements a value has; nil if Python knows no len of it.
function objects.size(v)
  local raw = text.raw(v)
  if raw then
    run.spend_scan(#raw)
    return characters.length(raw)
  end
  local c = values.class(v)
  if c == List or c == Tuple or c == View or c == Range then
    return v.n
  elseif c == Dict then
    return #v.keys
  elseif c == Undefined then
    return 0
  end
  return c == Loop and v:length() or nil
end

function objects.length(v)
  return objects.size(v) or run.fail("object of type '%s' has no len()", values.type(v))
end

-- ---- iteration ----

local function iterate_array(v)
  local i = 0
  return function()
    run.spend(1)
    i = i + 1
    if i <= v.n then
      return v[i]
    end
  end
end

-- Python's iterator of a Markup gives plain strings.
local function iterate_text(v)
  local raw, at = text.raw(v), 1
  v = text.plain(v)
  return function()
    if at > #raw then
      return nil
    end
    run.spend(1)
    local first = at
    at = raw:find("[^\128-\191]", at + 1) or #raw + 1
    return text.sub(v, first, at - 1)
  end
end

local function iterate_generator(v)
  return function()
    run.spend(1)
    if v.at < v.n then
      v.at = v.at + 1
      return v[v.at]
    end
  end
end

local function iterate_range(v)
  local i = -1
  return function()
    run.spend(1)
    i = i + 1
    if i < v.n then
      return v.start + i * v.step
    end
  end
end

local function iterate_keys(v)
  local i = 0
  return function()
    run.spend(1)
    i = i + 1
    return v.keys[i]
  end
end

local iterators = {
  [List] = iterate_array, [Tuple] = iterate_array, [View] = iterate_array, [Generator] = iterate_generator, [Range] = iterate_range, [Dict] = iterate_keys,
  [Undefined] = function() return function() end end,
  [Loop] = function(v) return v:iterate() end,
}

function objects.is_iterable(v)
  return text.is(v) or iterators[values.class(v)] ~= nil
end

--- A function that gives the next element; nil at the end.
function objects.iterate(v)
  if text.is(v) then
    return iterate_text(v)
  end
  local make = iterators[values.class(v)]
  if not make then
    run.fail("'%s' object is not iterable", values.type(v))
  end
  return make(v)
end

--- All elements, in an array of the caller's own, and how many.
function objects.collect(v)
  local array, n = {}, 0
  for element in objects.iterate(v) do
    n = n + 1
    array[n] = element
  end
  return array, n
end

-- ---- equality and order ----

local equal

local function equal_arrays(a, b)
  if a.n ~= b.n then
    return false
  end
  run.spend(a.n)
  for i = 1, a.n do
    if not equal(a[i], b[i]) then
      return false
    end
  end
  return true
end

local function equal_dicts(a, b)
  if #a.keys ~= #b.keys then
    return false
  end
  run.spend(#a.keys)
  for _, key in ipairs(a.keys) do
    local other = values.get(b, key)
    if other == nil or not equal(values.get(a, key), other) then
      return false
    end
  end
  return true
end

--- Whether two values are equal.
function equal(a, b)
  if a == b and type(a) ~= "cdata" then
    return a == a
  end
  local raw = text.raw(a)
  if raw then
    return raw == text.raw(b)
  end
  local n = values.number(a)
  if n then
    if type(a) == "cdata" and type(b) == "cdata" then
      return a == b
    end
    return n == values.number(b)
  end
  local c = values.class(a)
  if c == nil or c ~= values.class(b) then
    return false
  elseif c == List or c == Tuple or c == View then
    return equal_arrays(a, b)
  elseif c == Dict then
    return equal_dicts(a, b)
  elseif c == Range then
    return a.n == b.n and (a.n == 0 or a.start == b.start and (a.n == 1 or a.step == b.step))
  end
  return c == Undefined
end
objects.equal = equal

local less

local function less_arrays(a, b)
  for i = 1, math.min(a.n, b.n) do
    run.spend(1)
    if not equal(a[i], b[i]) then
      return less(a[i], b[i])
    end
  end
  return a.n < b.n
end

--- Whether a comes before b; an error for what has no order.
function less(a, b, operator)
  local s, t = text.raw(a), text.raw(b)
  if s and t then
    return s < t
  end
  local m, n = values.number(a), values.number(b)
  if m and n then
    return m < n
  end
  local c = values.class(a)
  if (c == List or c == Tuple) and c == values.class(b) then
    return less_arrays(a, b)
  end
  for _, v in ipairs {a, b} do
    if values.is_undefined(v) then
      objects.fail_undefined(v)
    end
  end
  return run.fail("'%s' not supported between instances of '%s' and '%s'", operator or "<", values.type(a), values.type(b))
end
objects.less = less

--- Sorts an array of n {key, value, ...} pairs by key; equal ones stay in order.
function objects.sort(pairs_, n, reverse)
  local width, from, to = 1, pairs_, {}
  while width < n do
    run.spend(n)
    for start = 1, n, 2 * width do
      local i, j = start, start + width
      local i_end, j_end = math.min(j - 1, n), math.min(j + width - 1, n)
      for k = start, j_end do
        local second
        if i > i_end then
          second = true
        elseif j <= j_end then
          local a, b = from[i][1], from[j][1]
          if reverse then
            second = less(a, b)
          else
            second = less(b, a)
          end
        end
        if second then
          to[k], j = from[j], j + 1
        else
          to[k], i = from[i], i + 1
        end
      end
    end
    from, to = to, from
    width = width * 2
  end
  return from
end

-- ---- membership ----

--- Pays for searching a needle in a haystack of bytes.
function objects.spend_search(hay, needle)
  run.spend(hay / 128 + hay * needle / 4096)
end

--- `needle in v`.
function objects.contains(v, needle)
  local raw = text.raw(v)
  if raw then
    local wanted = text.raw(needle)
    if not wanted then
      run.fail("'in <string>' requires string as left operand, not %s", values.type(needle))
    end
    objects.spend_search(#raw, #wanted)
    return raw:find(wanted, 1, true) ~= nil
  elseif values.class(v) == Dict then
    return values.get(v, needle) ~= nil
  elseif not objects.is_iterable(v) then
    run.fail("argument of type '%s' is not iterable", values.type(v))
  end
  for element in objects.iterate(v) do
    if equal(element, needle) then
      return true
    end
  end
  return false
end

return objects
