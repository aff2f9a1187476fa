--- The functions that templates find: range, namespace, dict, joiner, cycler, raise_exception, strftime_now.
-- @module weir.jinja.functions
local objects = require "weir.jinja.objects"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local null = values.null

local MAX_RANGE = 100000 -- as jinja2's sandbox

local functions = {}

local function define(name, fn)
  functions[name] = values.func(name, fn)
end

-- A function with a signature.
local function define_with(name, spec, fn)
  local bound = signature.bind(name, spec, function(_, ...) return fn(...) end)
  define(name, function(args, kwargs) return bound(nil, args, kwargs) end)
end

define_with("range", "start stop? step?", function(start, stop, step)
  start = signature.int(start, "range")
  stop, step = signature.int(stop, "range"), signature.int(step, "range", 1)
  if stop == nil then
    start, stop = 0, start
  end
  if step == 0 then
    run.fail "range() arg 3 must not be zero"
  end
  local range = values.range(start, stop, step)
  if range.n > MAX_RANGE then
    run.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MAX_RANGE)
  end
  return range
end)

-- A dict of one mapping or sequence of pairs, and names.
local function make_dict(args, kwargs)
  local dict, source = values.dict(), args[1]
  if args.n > 1 then
    run.fail("dict expected at most 1 argument, got %d", args.n)
  elseif values.class(source) == values.Dict then
    values.each(source, function(key, value) values.put(dict, key, value) end)
  elseif source ~= nil then
    for pair in objects.iterate(source) do
      local two, n = objects.collect(pair)
      if n ~= 2 then
        run.fail("dictionary update sequence element has length %d; 2 is required", n)
      end
      values.put(dict, two[1], two[2])
    end
  end
  for _, name in ipairs(kwargs or {}) do
    values.put(dict, text.literal(name), kwargs[name])
  end
  return dict
end

define("dict", make_dict)

define("namespace", function(args, kwargs)
  return setmetatable({dict = make_dict(args, kwargs)}, values.Namespace)
end)

define_with("raise_exception", "message?", function(message)
  run.raise(text.raw(printing.str(message == nil and null or message)))
end)

define_with("strftime_now", "format", function(format)
  local wanted = text.raw(signature.text(format, "strftime_now"))
  if #wanted > 1000 or wanted:find("%z") then
    run.fail "strftime_now: a format of more than 1000 bytes, or with a zero byte"
  end
  -- The first character keeps os.date from reading "*t" and "!" as its own.
  return text.like(format, os.date(" " .. wanted, run.now):sub(2))
end)

define_with("joiner", "sep?", function(separator)
  local used = false
  return values.func("joiner", function()
    if used then
      return separator == nil and text.literal ", " or separator
    end
    used = true
    return ""
  end)
end)

define("cycler", function(args)
  local items, at, fields = {}, 0, {}
  for i = 1, args.n do
    items[i] = args[i]
  end
  if args.n == 0 then
    run.fail "at least one item has to be provided"
  end
  fields.current = items[1]
  fields.next = values.func("next", function()
    local item = items[at + 1]
    at = (at + 1) % args.n
    fields.current = items[at + 1]
    return item
  end)
  fields.reset = values.func("reset", function()
    at, fields.current = 0, items[1]
    return null
  end)
  return values.func("cycler", function() return fields.next.call({n = 0}) end, fields)
end)

return functions
